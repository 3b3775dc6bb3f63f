"""The gate: plain Monte Carlo stays unless a mixture of candidates is clearly better, all errors counted."""

from dataclasses import replace

import numpy as np
from benchmarks.problems import mixture

import steinax as sx
from steinax.estimation._candidates import Candidate
from steinax.estimation._choice import Choice, choose
from steinax.estimation._draws import CandidateFit
from steinax.solvers import HeldOut

N, BLOCKS = 400, 8
FOLDS = tuple((50 * i, 50 * (i + 1)) for i in range(BLOCKS))
PLAIN = np.random.default_rng(0).normal(size=(N, 1))


def _small(seed: int, above: float = 0.0) -> np.ndarray:
    """What a good candidate leaves: little, with a mean so far above that of the plain average."""
    noise = np.random.default_rng(seed).normal(size=(N, 1))
    return PLAIN.mean() + above + 0.1 * (noise - noise.mean()) / noise.std()


def _tried(name: str, residual: np.ndarray, moved: float = 0.0) -> CandidateFit:
    """A candidate whose intercepts move to and fro by so much when folds are left out."""
    swing = moved * np.resize([1.0, -1.0], BLOCKS)[:, None]
    means = np.array([np.delete(residual, np.s_[a:b], axis=0).mean(axis=0) for a, b in FOLDS])
    held = HeldOut(residual, intercepts=means + swing, folds=FOLDS, without=means + swing)
    return CandidateFit(Candidate(name), held, residual.var(axis=0))


def _jackknife(estimates: np.ndarray) -> float:
    """The variance of an estimate, from the estimates without each fold."""
    return float((1 - 1 / BLOCKS) * ((estimates - estimates.mean()) ** 2).sum())


def _added(candidate: CandidateFit) -> float:
    """The jackknife's variance beyond that of an average of the same series."""
    still = _tried("still", candidate.held.residual).held.without
    return _jackknife(candidate.held.without) - _jackknife(still)


def _chosen(*candidates: CandidateFit) -> Choice:
    return choose([_tried("plain", PLAIN), *candidates], np.ones(1), FOLDS, 1)


def _is_plain(choice: Choice) -> None:
    """Alone, with its own series to the last bit, and charged for nothing but that."""
    assert choice.names == ("plain",)
    np.testing.assert_array_equal(choice.mixture[:, 0], np.eye(len(choice.candidates))[0])
    np.testing.assert_array_equal(choice.held.residual, PLAIN)
    np.testing.assert_array_equal(choice.held.unseen, 0.0)


def test_a_candidate_that_is_clearly_better_is_chosen() -> None:
    choice = _chosen(_tried("good", _small(1)))
    assert choice.names == ("good",)
    assert choice.held.residual.var() < 0.02


def test_a_little_better_is_not_clearly_better() -> None:
    """At 400 draws a variance must be below 1 - 3 / 20 of the plain one, not below 0.9."""
    a_little = PLAIN.mean() + np.sqrt(0.9) * (PLAIN - PLAIN.mean())
    much = PLAIN.mean() + np.sqrt(0.8) * (PLAIN - PLAIN.mean())
    _is_plain(_chosen(_tried("a little better", a_little)))
    assert _chosen(_tried("better", much)).names == ("better",)


def test_an_average_with_a_useless_candidate_is_not_better() -> None:
    """A series as wide as f, and independent of it: the mean of both would look half as wide."""
    noise = PLAIN.mean() + PLAIN.std() * np.random.default_rng(3).normal(size=(N, 1))
    _is_plain(_chosen(_tried("noise", noise)))


def test_candidates_that_contradict_each_other_are_left() -> None:
    """Each is sure of itself, and they differ by ten of the plain average's errors."""
    _is_plain(_chosen(_tried("low", _small(1)), _tried("high", _small(2, 0.5))))


def test_what_candidates_differ_by_enters_the_error() -> None:
    """Two of equal weight at a distance d: each is d / 2 from their mean."""
    choice = _chosen(_tried("low", _small(1)), _tried("high", _small(2, 0.06)))
    assert set(choice.mixture[1:, 0].round(1)) == {0.5}
    np.testing.assert_allclose(choice.held.unseen, 0.03**2, rtol=0.3)


def test_fits_that_move_are_left() -> None:
    """Their series is small, and their intercepts move by a plain error whenever a fold is left out."""
    _is_plain(_chosen(_tried("moving", _small(1), moved=0.05)))


def test_fits_that_move_a_little_are_charged_for_it() -> None:
    """By the variance of the jackknife beyond that of the series, which counts already."""
    moving = _tried("moving", _small(1), moved=0.005)
    choice = _chosen(moving)
    assert choice.names == ("moving",)
    np.testing.assert_allclose(choice.held.unseen, _added(moving), rtol=1e-6)


def test_fits_whose_estimates_without_folds_are_unknown_are_charged_by_their_intercepts() -> None:
    """By the sum of the squares of the moves, each 7/8 of what the intercept swings by."""
    moving = _tried("moving", _small(1), moved=0.005)
    choice = _chosen(replace(moving, held=replace(moving.held, without=None)))
    np.testing.assert_allclose(choice.held.unseen, BLOCKS * (7 / 8 * 0.005) ** 2, rtol=1e-6)


def test_plain_averages_are_not_charged_for_moving_as_averages_do() -> None:
    """A series of 0.8 of the plain variance whose moves make up for it: 0.95 is not clearly less."""
    series = PLAIN.mean() + np.sqrt(0.8) * (PLAIN - PLAIN.mean())
    wanted = 0.15 * PLAIN.var() / N
    moving = min(
        (_tried("moving", series, moved) for moved in np.linspace(0, 0.05, 501)),
        key=lambda candidate: abs(_added(candidate) - wanted),
    )
    np.testing.assert_allclose(_added(moving), wanted, rtol=0.05)
    assert _chosen(_tried("still", series)).names == ("still",)
    _is_plain(_chosen(moving))


def test_weights_are_by_the_variance_to_reckon_with() -> None:
    """Series that are equally wide, and one of them believed to be three times as variable."""
    feared = replace(_tried("feared", _small(2)), variance=np.array([0.03]))
    choice = _chosen(_tried("good", _small(1)), feared)
    np.testing.assert_allclose(choice.mixture[:, 0], [0, 0.75, 0.25], atol=0.05)


def test_candidates_far_from_the_best_are_not_mixed_in() -> None:
    worse = PLAIN.mean() + 2.1 * (_small(2) - PLAIN.mean())  # 4.4 times the variance
    choice = _chosen(_tried("good", _small(1)), _tried("worse", worse))
    np.testing.assert_array_equal(choice.mixture[:, 0], [0, 1, 0])


class TestEstimate:
    """The same of whole estimates, by polynomials, which are not compiled."""

    def test_noise_is_averaged_to_the_last_bit(self) -> None:
        rng = np.random.default_rng(0)
        x, noise = rng.normal(size=(4, 50, 2)), rng.normal(size=(4, 50, 50))
        found = sx.estimate(noise, sx.Sample(x, -x))
        assert set(found.chosen) == {"plain Monte Carlo"}
        np.testing.assert_array_equal(found.value, found.plain_value)
        of_chains = sx.chains.controlled_statistics(noise, noise, np.zeros(50))
        np.testing.assert_array_equal(found.mcse, of_chains.mcse)  # plain, where chains agree

    def test_far_modes_are_left_to_plain_averages(self) -> None:
        """No score knows how much a far mode weighs."""
        problem = mixture(4.0)
        for seed in range(8):
            x = problem.draw(np.random.default_rng(seed), 100)
            sample = sx.Sample(x.reshape(4, 25, -1), problem.score(x).reshape(4, 25, -1))
            found = sx.estimate({"first": sample.draws[..., 0]}, sample)
            assert found.chosen == ("plain Monte Carlo",)
            np.testing.assert_array_equal(found.value, found.plain_value)
