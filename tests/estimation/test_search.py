"""The search among kernels where draws are many: what it tries first, where it goes, when it stops."""

from dataclasses import replace

import numpy as np
import pytest

import steinax as sx
import targets
from steinax.estimation._candidates import (
    DOT_PRODUCT,
    LEAST_PENALTY,
    MOVES,
    OF_PAIRS,
    SPREAD,
    SQUARED,
    STEPS,
    WIDER,
    Candidate,
)
from steinax.estimation._draws import CandidateFit, RealDraws
from steinax.estimation._search import Search, candidate_fits
from steinax.kernels import _base

LENGTH, CHAINS = 30, 4
FOLDS = tuple((i * LENGTH, (i + 1) * LENGTH) for i in range(CHAINS))


def _of(sample: sx.Sample, f) -> tuple[RealDraws, list[CandidateFit]]:
    """Where candidates are tried, and those without a kernel."""
    values = np.asarray(f(np.asarray(sample.x)))
    draws = RealDraws(sample, values / values.std(axis=0), FOLDS)
    return draws, _plain(draws)


def _plain(draws: RealDraws) -> list[CandidateFit]:
    found = [draws.with_columns(f"Polynomial({degree})") for degree in (1, 2)]
    return [draws.plain(), *(trial for trial in found if trial is not None)]


def _searched(draws: RealDraws, found: list[CandidateFit], starts, more) -> list[CandidateFit]:
    best = np.min([trial.variance for trial in found], axis=0)
    search = Search(draws, best, np.ones(len(best), bool))
    return [*search.first(starts), *search.tune(more)]


def _hard() -> tuple[RealDraws, list[CandidateFit]]:
    """A banana, and integrands that no polynomial is exact for."""
    sample = targets.banana(2).sample(0, chains=CHAINS, length=LENGTH)
    return _of(sample, lambda x: np.concatenate([np.sin(2 * x), np.abs(x)], axis=1))


def _tried(found: list[CandidateFit]) -> list[Candidate]:
    """The kernels, without the polynomials that go with them, in order."""
    return list(dict.fromkeys(replace(trial.candidate, columns="") for trial in found))


@pytest.fixture(scope="module")
def hard() -> tuple[list[CandidateFit], list[CandidateFit]]:
    """Candidates without a kernel, and what the search adds to them."""
    draws, found = _hard()
    return found, _searched(draws, found, SPREAD, WIDER)


class TestHard:
    def test_all_starts_are_tried_first_and_then_a_few_neighbours(self, hard) -> None:
        tried = _tried(hard[1])
        starts = [*SPREAD, *WIDER]
        assert tried[: len(starts)] == starts
        assert len(tried) > len(starts)
        for i in range(len(hard[1][0].variance)):
            asked = _tried([one for one in hard[1] if one.asked is None or one.asked[i]])
            assert len(asked) <= len(starts) + STEPS

    def test_each_integrand_sees_only_what_it_asked_for(self, hard) -> None:
        """What one asks for alone is what it sees in company, and its variances are the same."""
        alone, _ = _hard()
        alone.f = alone.f[:, 1:2]
        found = _searched(alone, _plain(alone), SPREAD, WIDER)
        own = {one.candidate: one.variance[0] for one in found}
        shared = {one.candidate: one.variance[1] for one in hard[1] if one.usable[1]}
        assert own.keys() == shared.keys()
        assert len(shared) < len({one.candidate for one in hard[1]})
        ours, theirs = ([each[candidate] for candidate in own] for each in (own, shared))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    def test_each_step_is_one_move_from_what_was_tried_before(self, hard) -> None:
        tried = _tried(hard[1])
        for i in range(len(SPREAD) + len(WIDER), len(tried)):
            assert LEAST_PENALTY <= tried[i].penalty <= 1
            assert any(
                tried[i].kernel == other.kernel
                and np.isclose(tried[i].factor, other.factor * length)
                and np.isclose(tried[i].penalty, other.penalty * penalty)
                for other in tried[:i]
                for length, penalty in MOVES
            )

    def test_leaves_less_than_polynomials(self, hard) -> None:
        without, added = (np.min([one.variance for one in part], axis=0) for part in hard)
        assert np.log(added / without).mean() < -1


def test_nothing_more_is_tried_where_the_first_leave_nothing() -> None:
    """The first of normal draws, their squares, and a sine: degree 1 and 2 are exact, kernels for the
    sine alone.
    """
    x = np.random.default_rng(0).normal(size=(CHAINS, LENGTH, 1))
    draws, _ = _of(sx.Sample(x, -x), lambda x: np.concatenate([x, x**2, np.sin(2 * x)], axis=1))
    found = list(candidate_fits(draws))
    asked = [{str(one.candidate) for one in found if one.usable[i]} for i in range(3)]
    assert asked[0] == {"plain Monte Carlo", "Polynomial(1)"}
    assert asked[1] == {"plain Monte Carlo", "Polynomial(1)", "Polynomial(2)"}
    assert len(asked[2]) > 50
    alone, _ = _of(sx.Sample(x, -x), lambda x: x)
    assert [str(one.candidate) for one in candidate_fits(alone)] == [
        "plain Monte Carlo",
        "Polynomial(1)",
    ]


def test_the_wider_kernels_are_for_what_the_first_leave_much_of() -> None:
    """Of the squares of normal draws the first leave next to nothing."""
    x = np.random.default_rng(0).normal(size=(CHAINS, LENGTH, 2))
    draws, found = _of(sx.Sample(x, -x), lambda x: x**2)
    tried = _tried(_searched(draws, found, SPREAD, WIDER))
    assert tried[: len(SPREAD)] == list(SPREAD)
    assert Candidate("", SQUARED, 1.0, 1e-4) not in tried
    assert len(tried) <= len(SPREAD) + STEPS


@pytest.mark.parametrize(("kernel", "factor"), [(SQUARED, 4.0), (OF_PAIRS, 2.0)])
def test_half_of_a_kernel_matrix_is_made(kernel: str, factor: float, monkeypatch) -> None:
    """What lies above the diagonal, beyond the tile on it, is copied from below."""
    entries, products = [], _base.PairProducts

    def counted(x, s, y, t) -> _base.PairProducts:
        entries.append(len(x) * len(y))
        return products(x, s, y, t)

    monkeypatch.setattr(_base, "PairProducts", counted)
    monkeypatch.setattr(_base, "NUMBERS", 1)
    draws, _ = _hard()
    matrix, _ = draws.kernel(kernel, factor)
    assert sum(entries) < 0.6 * matrix.size
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)


def test_functions_without_a_variance_are_left_out() -> None:
    """In one dimension half the median distance is too short for functions that grow so fast."""
    x = np.random.default_rng(0).normal(size=(CHAINS, LENGTH, 1))
    draws, found = _of(sx.Sample(x, -x), np.abs)
    short = Candidate("", DOT_PRODUCT, 0.5, 1e-4)
    assert 0.5 * draws.median < np.sqrt(2)
    tried = _tried(_searched(draws, found, [short, SPREAD[0]], ()))
    assert short not in tried
    assert tried[0] == SPREAD[0]
