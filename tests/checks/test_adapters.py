"""Adapters: right ones pass, and each of the usual mistakes is named."""

import numpy as np
import pytest

import steinax as sx
from steinax import checks
from steinax.checks._laws import skewed

TARGET = skewed(2)
X = TARGET.draw(np.random.default_rng(0), 200).reshape(4, 50, 2)
SCORE = TARGET.score(X)
RNG = np.random.default_rng(0)
EXPECTED = {
    "chains": 4,
    "length": 50,
    "dim": 2,
    "names": ("a", "b"),
    "log_density": lambda x: float(np.sum(3 * x - np.exp(x))),
}


def _sample(x=X, score=SCORE, names=("a", "b")) -> sx.Sample:
    return sx.Sample(np.array(x), np.array(score), names)


def test_a_right_one_passes() -> None:
    checks.check_adapter(_sample, **EXPECTED)


def test_little_need_be_known() -> None:
    checks.check_adapter(_sample)


def _shuffled() -> sx.Sample:
    order = RNG.permutation(50)
    return _sample(X[:, order], SCORE[:, order])


def _stuck() -> sx.Sample:
    x = X.copy()
    x[1] = x[1, 0]
    return _sample(x, TARGET.score(x))


MUTANTS = {
    "flipped sign": (lambda: _sample(score=-SCORE), "the sign is flipped"),
    "tempered": (lambda: _sample(score=SCORE / 2), "off by a factor of 0.5"),
    "missing Jacobian": (lambda: _sample(score=SCORE - 1), "scores are gradients.*finite diff"),
    "permuted columns": (lambda: _sample(score=SCORE[..., ::-1]), "scores are gradients"),
    "one draw late": (lambda: _sample(score=np.roll(SCORE, 1, axis=1)), "scores are gradients"),
    "constrained draws": (lambda: _sample(x=np.exp(X)), "scores are gradients"),
    "chains and draws swapped": (
        lambda: _sample(X.swapaxes(0, 1), SCORE.swapaxes(0, 1)),
        "`chains` is 50, not 4",
    ),
    "a draw too few": (lambda: _sample(X[:, 1:], SCORE[:, 1:]), "`length` is 49, not 50"),
    "names in another order": (lambda: _sample(names=("b", "a")), r"the names are \('b', 'a'\)"),
    "shuffled": (_shuffled, "two readings differ"),
    "no sample": (lambda: (X, SCORE), "it returns a tuple"),
    "a stuck chain": (_stuck, r"chains that never move: \[1\]"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_one_is_named(name: str) -> None:
    read, message = MUTANTS[name]
    with pytest.raises(checks.CheckFailed, match=f"(?s){message}"):
        checks.check_adapter(read, **EXPECTED)
