"""Folds are whole chains or blocks of them, and every split says what it cannot do."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import registry
import steinax as sx
import targets

TARGET = targets.banana(2)
SAMPLE = TARGET.sample(0, chains=4, length=60)
CASES = [(1, 100), (3, 50), (4, 250), (8, 30), (11, 20), (40, 10)]


def _boundaries(chains: int, length: int, folds: int | None = None):
    return sx.CrossFit(folds).boundaries(chains=chains, length=length)


class TestFolds:
    @pytest.mark.parametrize("folds", [None, 2, 5, 13])
    @pytest.mark.parametrize(("chains", "length"), CASES)
    def test_folds_cover_every_draw_once_and_in_order(self, chains, length, folds) -> None:
        found = _boundaries(chains, length, folds)
        assert found[0][0] == 0
        assert found[-1][1] == chains * length
        assert all(one[1] == two[0] for one, two in pairwise(found))
        assert all(start < stop for start, stop in found)

    @pytest.mark.parametrize(("chains", "length"), CASES)
    def test_no_fold_crosses_a_chain_by_default(self, chains: int, length: int) -> None:
        for start, stop in _boundaries(chains, length):
            whole = start % length == 0 and stop % length == 0
            assert whole or start // length == (stop - 1) // length

    def test_many_chains_are_left_out_whole(self) -> None:
        assert _boundaries(8, 30) == tuple((30 * i, 30 * (i + 1)) for i in range(8))
        assert len(_boundaries(40, 10)) == 10

    @pytest.mark.parametrize(("chains", "count"), [(1, 8), (2, 8), (3, 9), (4, 8), (7, 14)])
    def test_few_chains_are_cut_into_eight_blocks_or_a_few_more(self, chains, count) -> None:
        assert len(_boundaries(chains, 100)) == count

    def test_as_many_folds_as_chains_are_the_chains(self) -> None:
        assert _boundaries(4, 25, 4) == ((0, 25), (25, 50), (50, 75), (75, 100))


class TestHonesty:
    def test_held_out_draws_do_not_reach_their_own_fit(self) -> None:
        """Changing f on one fold changes nothing of g there: f - g moves by as much as f."""
        f = np.asarray(sx.data.integrands(lambda x: jnp.sin(x[1]), SAMPLE).values)
        moved = f.copy()
        moved[1] += 100.0
        plain, other = (_held_out_series(values) for values in (f, moved))
        np.testing.assert_allclose(other[1] - plain[1], 100.0, rtol=1e-9)

    @pytest.mark.parametrize("row", registry.SPLITS, ids=str)
    def test_every_split_estimates(self, row) -> None:
        """Within 6 standard errors of plain Monte Carlo: 1e-8 false alarms."""
        found = sx.estimate(TARGET.functions, SAMPLE, sx.Polynomial(2), split=row.make())
        error = np.abs(found.value - TARGET.expectations)
        assert np.all(error < 6 * found.plain_mcse)

    def test_holding_out_averages_over_the_rest_only(self) -> None:
        """The estimate is the mean of f - g over the last halves, with g of the first halves."""
        half = SAMPLE.length // 2
        first = sx.Sample(SAMPLE.draws[:, :half], SAMPLE.scores[:, :half])
        family = sx.Polynomial(1)  # spanned by the scores, in whatever coordinates
        found = sx.estimate("x", SAMPLE, family, split=sx.HoldOut(0.5))
        g = sx.fit("x", first, family)
        rest = SAMPLE.draws[:, half:] - g(SAMPLE.draws[:, half:], SAMPLE.scores[:, half:])
        np.testing.assert_allclose(found.value, rest.mean(axis=(0, 1)), atol=1e-9)


def _held_out_series(values: np.ndarray) -> np.ndarray:
    from steinax._numerics import precision
    from steinax.solvers import prepare

    with precision(np.float64):
        wanted = sx.data.integrands(values, SAMPLE)
        family = sx.Polynomial(2) + sx.KernelTranslates()
        problem, _ = prepare(wanted, SAMPLE, family, None, None)
        residual = sx.CrossFit(4).control(problem, 4, sx.Exact()).residual
        return residual.reshape(SAMPLE.chains, SAMPLE.length, -1)


class TestRefuses:
    """Every message names what is wrong and what to do next."""

    @pytest.mark.parametrize("folds", [0, 1, -3])
    def test_too_few_folds(self, folds: int) -> None:
        with pytest.raises(ValueError, match="at least two folds are needed"):
            sx.CrossFit(folds)

    def test_more_folds_than_draws(self) -> None:
        with pytest.raises(ValueError, match="50 folds of 40 draws: use fewer folds"):
            _boundaries(4, 10, 50)

    @pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0])
    def test_fractions_outside_zero_and_one(self, fraction: float) -> None:
        with pytest.raises(ValueError, match="must lie between 0 and 1"):
            sx.HoldOut(fraction)

    def test_a_fraction_that_leaves_nothing(self) -> None:
        with pytest.raises(ValueError, match=r"use another fraction, or CrossFit\(\)"):
            sx.estimate("x", SAMPLE, sx.Polynomial(2), split=sx.HoldOut(0.001))

    def test_too_few_draws_for_a_family_without_a_penalty(self) -> None:
        with pytest.raises(ValueError, match=r"give that term a penalty.*or use a lower degree"):
            sx.estimate("x", TARGET.sample(1, 4, 5), sx.Polynomial(5), penalty=sx.NoPenalty())
