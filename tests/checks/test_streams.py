"""Bad streams are refused with an error that says what to do."""

import numpy as np
import pytest

import steinax as sx
from steinax import checks

X = np.random.default_rng(0).normal(size=(2, 40, 2))
SAMPLE = sx.Sample(X, -X)
OTHER = sx.Sample(X, -X, names=["a", "b"])
NARROW = sx.Sample(X[..., :1], -X[..., :1])
STILL = sx.Sample(X * [1.0, 0.0], -X)


def blocks(*samples: sx.Sample, chains: int = 2) -> sx.Stream:
    return sx.Stream(lambda: (block for one in samples for block in one.blocks(20)), chains)


BAD = {
    "not a function": (lambda: sx.Stream(SAMPLE.blocks(10)), "cannot be read twice"),
    "no chains": (lambda: blocks(SAMPLE, chains=0), "one chain or more"),
    "not samples": (lambda: sx.estimate("x", sx.Stream(lambda: iter([X]))), "gave a ndarray"),
    "other names": (lambda: sx.estimate("x", blocks(SAMPLE, OTHER)), "let all have the same"),
    "other dimensions": (lambda: sx.estimate("x", blocks(SAMPLE, NARROW)), "let all have the same"),
    "unequal chains": (
        lambda: sx.estimate("x", blocks(SAMPLE, chains=3)),
        "chains of equal length",
    ),
    "a constant": (lambda: sx.estimate("x", blocks(STILL)), "never change"),
    "an array for f": (lambda: sx.estimate(X, blocks(SAMPLE)), "first two axes"),
    "all draws as centres": (
        lambda: sx.estimate("x", blocks(SAMPLE), sx.KernelTranslates()),
        r"Landmarks\(count\)",
    ),
    "weights": (lambda: sx.weigh(blocks(SAMPLE)), "give a Sample"),
    "a fit": (lambda: sx.fit("x", blocks(SAMPLE), sx.Polynomial(1)), "give a Sample"),
}


@pytest.mark.parametrize("name", BAD)
def test_is_refused(name: str) -> None:
    call, message = BAD[name]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    if "jaxtyping" not in type(caught.value).__module__:
        checks._estimator.check_named(caught.value)
        assert caught.match(message)


def test_a_good_one_is_honest() -> None:
    assert isinstance(checks.outcome(lambda: sx.estimate("x", blocks(SAMPLE))), sx.Estimate)
