"""An estimate is that of its integrand and the draws: other integrands and free memory do not change it."""

import tracemalloc

import numpy as np
import pytest

import steinax as sx
from full import FULL
from steinax.estimation._candidates import Candidate
from steinax.estimation._choice import choose
from steinax.estimation._draws import CandidateFit, integration
from steinax.solvers import HeldOut

BEND = 0.4


def bent_chains(n: int, dim: int, rho: float) -> sx.Sample:
    """Four autocorrelated chains from a banana in many dimensions."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(4, n // 4, dim))
    for t in range(1, n // 4):
        z[:, t] = rho * z[:, t - 1] + np.sqrt(1 - rho**2) * z[:, t]
    x, score = z.copy(), -z
    x[..., 1:] += BEND * z[..., :1] ** 2
    score[..., 0] += 2 * BEND * z[..., 0] * z[..., 1:].sum(axis=-1)
    return sx.Sample(x, score)


def six(sample: sx.Sample) -> dict[str, np.ndarray]:
    """Smooth, rough and fast integrands, of different autocorrelations."""
    first, last = sample.draws[..., 0], sample.draws[..., -1]
    return {
        "growth": np.exp(first / 2),
        "wave": np.sin(3 * last),
        "cubic": first**2 * last,
        "event": (first > 1) * 1.0,
        "size": np.abs(last),
        "slope": np.tanh(sample.draws.sum(axis=-1)),
    }


def assert_same(one: sx.Estimate, other: sx.Estimate) -> None:
    assert one.names == other.names
    assert one.chosen == other.chosen
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9)
    np.testing.assert_allclose(one.mcse, other.mcse, rtol=1e-6, atol=1e-9 * one.plain_mcse.min())


def assert_alone_as_in_company(sample: sx.Sample, **options) -> None:
    f = six(sample)
    together = sx.estimate(f, sample, **options)
    for name, values in f.items():
        assert_same(sx.estimate({name: values}, sample, **options), together[[name]])


def test_folds_are_those_of_the_draws() -> None:
    """Independent draws have many folds, also for a slow integrand."""
    sample = bent_chains(400, 2, 0.0)
    slow = np.cumsum(np.random.default_rng(0).normal(size=(4, 100, 1)), axis=1)
    counts = {
        len(integration(sx.data.integrands({"f": f}, sample), sample, np.array([ess])).draws.folds)
        for f, ess in ((slow, 8.0), (sample.draws[..., :1], 400.0))
    }
    assert counts == {24}


SLOW = {
    "grid": (200, 2, 0.5),
    "grid in 10 dimensions": (400, 10, 0.8),
    "search": (600, 2, 0.7),
    "search of pairs": (800, 6, 0.9),
    "directions": (600, 40, 0.5),
}


@pytest.mark.parametrize(
    ("n", "dim", "rho"),
    [
        pytest.param(400, 3, 0.9, id="grid in 3 dimensions"),
        pytest.param(320, 40, 0.5, id="directions, few draws"),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, case in SLOW.items()),
    ],
)
def test_alone_as_in_company(n: int, dim: int, rho: float) -> None:
    assert_alone_as_in_company(bent_chains(n, dim, rho))


@pytest.mark.slow
def test_alone_as_in_company_where_a_part_chooses() -> None:
    """The same candidates. With next to no noise their normal equations lose half of the digits.

    Three integrands, on CI two.
    """
    sample = bent_chains(3200, 3, 0.5)
    some = ("growth", "wave", "cubic") if FULL else ("growth", "wave")
    f = {name: one for name, one in six(sample).items() if name in some}
    together = sx.estimate(f, sample)
    for name, values in f.items():
        alone, company = sx.estimate({name: values}, sample), together[[name]]
        assert alone.chosen == company.chosen
        assert set(alone.candidates.names) == set(company.candidates.names)
        assert np.all(np.abs(alone.value - company.value) < 1e-4 * alone.mcse)
        np.testing.assert_allclose(alone.mcse, company.mcse, rtol=1e-4)


@pytest.mark.slow
def test_memory_changes_nothing() -> None:
    sample = bent_chains(240, 2, 0.7)
    values = np.sin(sample.draws @ np.random.default_rng(0).normal(size=(2, 600)))
    wide, narrow = (sx.estimate({"f": values}, sample, memory=size) for size in (4e9, 7e7))
    assert "blocks" in narrow.note
    assert "blocks" not in wide.note
    assert_same(narrow, wide)


def test_the_series_of_few_candidates_are_held() -> None:
    """Of 60 candidates the 8 best of each integrand: a list of all would take 60 arrays."""
    n, k, count = 500, 40, 60
    folds = tuple((i, i + 50) for i in range(0, n, 50))
    rng = np.random.default_rng(0)

    def candidates():
        for degree in range(count):
            residual = rng.normal(size=(n, k)) * (1.0 if degree == 0 else 0.1)
            held = HeldOut(residual, intercepts=np.zeros((len(folds), k)), folds=folds)
            yield CandidateFit(Candidate(str(degree)), held, residual.var(axis=0))

    tracemalloc.start()
    try:
        choice = choose(candidates(), np.ones(k), folds, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(choice.candidates) == count
    assert peak < 20 * 8 * n * k
