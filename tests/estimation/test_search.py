"""The search among kernels where draws are many: what it tries first, where it goes, when it stops."""

from dataclasses import replace

import numpy as np
import pytest

import steinax as sx
import targets
from steinax._precision import precision
from steinax.estimation._arena import Arena
from steinax.estimation._automatic import _arena
from steinax.estimation._recipes import QUIETEST, SPREAD, WIDER_SPREAD, Recipe
from steinax.estimation._search import MOVES, STEPS, search
from steinax.estimation._trials import Trial
from steinax.kernels import ExponentialDotProduct, SquaredExponential

LENGTH, CHAINS = 30, 4
FOLDS = tuple((i * LENGTH, (i + 1) * LENGTH) for i in range(CHAINS))


def _of(sample: sx.Sample, f) -> tuple[Arena, list[Trial]]:
    """Where candidates are tried, and those without a kernel."""
    with precision(np.float64):
        values = np.asarray(f(np.asarray(sample.x)))
        arena = _arena(sample, values / values.std(axis=0), FOLDS)
        trials = [arena.trial(Recipe(degree)) for degree in (0, 1, 2)]
    return arena, [trial for trial in trials if trial is not None]


def _hard() -> tuple[Arena, list[Trial]]:
    """A banana, and integrands that no polynomial is exact for."""
    sample = targets.banana(2).sample(0, chains=CHAINS, length=LENGTH)
    return _of(sample, lambda x: np.concatenate([np.sin(2 * x), np.abs(x)], axis=1))


def _tried(trials: list[Trial]) -> list[Recipe]:
    """The kernels, without the polynomials beside them, in order."""
    return list(dict.fromkeys(replace(trial.recipe, degree=0) for trial in trials))


@pytest.fixture(scope="module")
def hard() -> tuple[list[Trial], list[Trial]]:
    """Candidates without a kernel, and what the search adds to them."""
    arena, found = _hard()
    with precision(np.float64):
        return found, list(search(arena, found, SPREAD, WIDER_SPREAD))


class TestHard:
    def test_all_starts_are_tried_first_and_then_a_few_neighbours(self, hard) -> None:
        tried = _tried(hard[1])
        starts = [*SPREAD, *WIDER_SPREAD]
        assert tried[: len(starts)] == starts
        assert len(tried) > len(starts)
        for i in range(len(hard[1][0].variance)):
            asked = _tried([one for one in hard[1] if one.asked is None or one.asked[i]])
            assert len(asked) <= len(starts) + STEPS

    def test_each_integrand_sees_only_what_it_asked_for(self, hard) -> None:
        """What one asks for alone is what it sees in company, and its variances are the same."""
        with precision(np.float64):
            arena, found = _hard()
            alone = replace(arena, f=arena.f[:, 1:2])
            first = [alone.trial(one.recipe) for one in found]
            own = {
                one.recipe: one.variance[0] for one in search(alone, first, SPREAD, WIDER_SPREAD)
            }
        shared = {one.recipe: one.variance[1] for one in hard[1] if one.usable[1]}
        assert own.keys() == shared.keys()
        assert len(shared) < len({one.recipe for one in hard[1]})
        ours, theirs = ([each[recipe] for recipe in own] for each in (own, shared))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    def test_each_step_is_one_move_from_what_was_tried_before(self, hard) -> None:
        tried = _tried(hard[1])
        for i in range(len(SPREAD) + len(WIDER_SPREAD), len(tried)):
            assert QUIETEST <= tried[i].noise <= 1
            assert any(
                tried[i].kernel is other.kernel
                and np.isclose(tried[i].factor, other.factor * length)
                and np.isclose(tried[i].noise, other.noise * noise)
                for other in tried[:i]
                for length, noise in MOVES
            )

    def test_leaves_less_than_polynomials(self, hard) -> None:
        without, added = (np.min([one.variance for one in part], axis=0) for part in hard)
        assert np.log(added / without).mean() < -1


def test_nothing_more_is_tried_where_the_first_leave_nothing() -> None:
    """The squares of normal draws: a polynomial is exact."""
    x = np.random.default_rng(0).normal(size=(CHAINS, LENGTH, 2))
    arena, found = _of(sx.Sample(x, -x), lambda x: x**2)
    with precision(np.float64):
        tried = _tried(list(search(arena, found, SPREAD, WIDER_SPREAD)))
    assert tried[: len(SPREAD)] == list(SPREAD)
    assert not set(tried) & {Recipe(0, SquaredExponential, 1.0, 1e-4)}
    assert len(tried) <= len(SPREAD) + STEPS


def test_functions_without_a_variance_are_left_out() -> None:
    """In one dimension half the median distance is too short for functions that grow so fast."""
    x = np.random.default_rng(0).normal(size=(CHAINS, LENGTH, 1))
    arena, found = _of(sx.Sample(x, -x), np.abs)
    short = Recipe(0, ExponentialDotProduct, 0.5, 1e-4)
    assert 0.5 * float(arena.median) < np.sqrt(2)
    with precision(np.float64):
        tried = _tried(list(search(arena, found, [short, SPREAD[0]])))
    assert short not in tried
    assert tried[0] == SPREAD[0]
