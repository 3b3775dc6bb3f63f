"""Estimates with training points, which control variates are fitted to and which are never averaged."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import steinax as sx
from steinax.data import fresh_points, integrands, with_warmup
from steinax.estimation import HoldOut, InSample
from steinax.estimation._draws import thinned
from steinax.estimation._splits import with_moves
from steinax.solvers import (
    ConjugateGradient,
    Exact,
    Nystrom,
    prepare,
    typical_share,
    with_training,
)

F = {"y": lambda x: x[1], "square": lambda x: x[1] ** 2, "exp": lambda x: jnp.exp(0.3 * x[0])}


def banana(z: np.ndarray) -> sx.Sample:
    """A Gaussian bent once: y = z_1 + z_0^2 - 1."""
    x = np.stack([z[..., 0], z[..., 1] + z[..., 0] ** 2 - 1], axis=-1)
    score = np.stack([-z[..., 0] + 2 * z[..., 1] * z[..., 0], -z[..., 1]], axis=-1)
    return sx.Sample(x, score)


BANANA = np.array([0.0, 3.0, np.exp(0.045)])


def wave(z: np.ndarray) -> sx.Sample:
    """A Gaussian bent several times: y = z_1 + 1.5 cos(2 z_0)."""
    x = np.stack([z[..., 0], z[..., 1] + 1.5 * np.cos(2 * z[..., 0])], axis=-1)
    score = np.stack([-z[..., 0] - 3 * z[..., 1] * np.sin(2 * z[..., 0]), -z[..., 1]], axis=-1)
    return sx.Sample(x, score)


WAVE = np.array([1.5 * np.exp(-2), 1 + 2.25 * (1 + np.exp(-8)) / 2, np.exp(0.045)])


def chains(seed: int, length: int, rho: float = 0.0) -> np.ndarray:
    z = np.random.default_rng(seed).normal(size=(4, length, 2))
    for i in range(1, length):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * z[:, i]
    return z


KERNEL = sx.Polynomial(1) + sx.KernelTranslates(sx.kernels.SquaredExponential(2.0))
SAMPLE = wave(chains(0, 25))
TRAINING = wave(chains(1, 75))
BOTH = SAMPLE.with_training(TRAINING)


def by_hand(family: sx.Polynomial) -> np.ndarray:
    """Each fold's residuals from the least-squares fit to all rows but the fold and its training points."""
    problem, _ = prepare(integrands(F, BOTH), BOTH, family, None, None)
    columns = np.asarray(family.feature_matrix(None, problem.x, problem.score))
    columns = np.concatenate([np.ones((len(columns), 1)), columns], axis=1)
    folds = sx.CrossFit().boundaries(4, 25)
    order, row_folds, _ = with_training(folds, 300)
    residual = []
    for (start, stop), (first, last) in zip(folds, row_folds, strict=True):
        train = np.concatenate([order[:first], order[last:]])
        coef = np.linalg.lstsq(columns[train], problem.f[train], rcond=None)[0]
        residual.append(problem.f[start:stop] - columns[start:stop, 1:] @ coef[1:])
    return np.concatenate(residual)


class TestGivenFamily:
    def test_is_the_mean_over_draws_of_fits_to_all_other_rows(self) -> None:
        result = sx.estimate(F, BOTH, sx.Polynomial(2))
        assert np.allclose(result.value, by_hand(sx.Polynomial(2)).mean(axis=0), rtol=1e-9)
        plain = sx.estimate(F, SAMPLE, sx.Polynomial(2))
        assert np.array_equal(result.plain_value, plain.plain_value)
        assert np.array_equal(result.plain_mcse, plain.plain_mcse)
        assert "fitted to 300 training points besides the draws" in result.note

    @pytest.mark.parametrize("solver", [ConjugateGradient(), Nystrom(400)])
    def test_solvers_agree(self, solver) -> None:
        family = sx.Polynomial(1) + sx.KernelTranslates()
        exact = sx.estimate(F, BOTH, family, solver=Exact())
        result = sx.estimate(F, BOTH, family, solver=solver)
        assert np.all(np.abs(result.value - exact.value) < 0.05 * exact.mcse)
        assert np.allclose(result.mcse, exact.mcse, rtol=0.05)

    def test_a_penalty_that_is_set_up_on_each_training_set(self) -> None:
        penalty = [sx.MeanSquare(1e-8)]
        result = sx.estimate(F, BOTH, sx.Polynomial(2), penalty=penalty)
        assert np.allclose(result.value, by_hand(sx.Polynomial(2)).mean(axis=0), atol=1e-4)

    def test_many_integrands_in_blocks(self) -> None:
        f = {"f": lambda x: jnp.cos(x[0] * jnp.arange(1.0, 401.0))}
        whole = sx.estimate(f, BOTH, sx.Polynomial(2))
        blocks = sx.estimate(f, BOTH, sx.Polynomial(2), memory=52e6)
        assert "blocks of" in blocks.note
        assert np.allclose(blocks.value, whole.value, rtol=1e-8, atol=1e-10)
        assert np.allclose(blocks.mcse, whole.mcse, rtol=1e-6)

    def test_in_sample_and_held_out(self) -> None:
        for split in (InSample(), HoldOut(0.5)):
            alone = sx.estimate(F, SAMPLE, sx.Polynomial(2), split=split)
            both = sx.estimate(F, BOTH, sx.Polynomial(2), split=split)
            assert np.array_equal(both.plain_value, alone.plain_value)
            assert np.all(both.value != alone.value)

    @pytest.mark.slow
    def test_a_network_is_trained_on_them(self) -> None:
        alone, both = (
            sx.estimate(F, sample, sx.Network(), solver=sx.Stochastic())
            for sample in (SAMPLE, BOTH)
        )
        assert np.all(both.mcse < alone.mcse)
        assert np.all(np.abs(both.value - WAVE) < 4 * both.mcse)

    def test_fit_uses_them(self) -> None:
        alone, both = (sx.fit(F, sample, sx.Polynomial(2)) for sample in (SAMPLE, BOTH))
        assert "100 draws" in repr(alone) and "400 draws" in repr(both)


class TestChoice:
    def test_they_make_the_error_smaller_and_the_estimate_right(self) -> None:
        alone, both = sx.estimate(F, SAMPLE), sx.estimate(F, BOTH)
        assert np.all(both.mcse < 0.5 * alone.mcse)
        assert np.all(np.abs(both.value - WAVE) < 4 * both.mcse)

    def test_points_that_are_no_draws_of_the_target_leave_no_bias(self) -> None:
        shifted = wave(0.7 * chains(2, 75) + 0.8)
        result = sx.estimate(F, SAMPLE.with_training(shifted))
        assert np.all(np.abs(result.value - WAVE) < 4 * result.mcse)
        assert np.all(result.mcse < 0.5 * result.plain_mcse)

    def test_more_of_them_than_are_searched_at_once(self) -> None:
        result = sx.estimate(F, SAMPLE.with_training(wave(chains(3, 300))))
        assert np.all(np.abs(result.value - WAVE) < 4 * result.mcse)
        assert np.all(result.mcse < 0.7 * sx.estimate(F, SAMPLE).mcse)
        assert "with 900 of the training points" in result.note

    def test_in_many_dimensions(self) -> None:
        x, t = (np.random.default_rng(i).normal(size=(4, n, 40)) for i, n in ((0, 25), (1, 100)))
        f = {"exp": lambda x: jnp.exp(0.3 * x[0]), "wave": lambda x: jnp.cos(x[1])}
        alone = sx.estimate(f, sx.Sample(x, -x))
        both = sx.estimate(f, sx.Sample(x, -x, training=sx.Sample(t, -t)))
        assert np.all(both.mcse < 0.8 * alone.mcse)
        assert np.all(np.abs(both.value - np.exp([0.045, -0.5])) < 4 * both.mcse)

    def test_importance_weights(self) -> None:
        rng = np.random.default_rng(4)
        x, t = 1.3 * rng.normal(size=(4, 100, 2)), rng.normal(size=(4, 100, 2))
        log_weights = (x**2 * (1 / 1.69 - 1) / 2).sum(axis=-1)
        f = {"square": lambda x: x[0] ** 2, "cos": lambda x: jnp.cos(x[1])}
        weighted = sx.Sample(x, -x, log_weights=log_weights)
        alone, both = (
            sx.estimate(f, weighted),
            sx.estimate(f, weighted.with_training(sx.Sample(t, -t))),
        )
        assert np.array_equal(both.plain_value, alone.plain_value)
        assert both.value[1] != alone.value[1]
        assert np.all(np.abs(both.value - [1.0, np.exp(-0.5)]) < 4 * both.mcse + 1e-10)

    def test_a_space(self) -> None:
        def sample(seed: int, n: int) -> sx.Sample:
            u = np.random.default_rng(seed).beta(2, 3, size=(4, n, 1))
            return sx.Sample(u, 1 / u - 2 / (1 - u), space=sx.spaces.Box(0.0, 1.0))

        alone, both = sample(0, 25), sample(0, 25).with_training(sample(1, 75))
        f = {"exp": lambda x: jnp.exp(3 * x[0])}
        truth = stats.beta(2, 3).expect(lambda u: np.exp(3 * u))
        first, second = sx.estimate(f, alone), sx.estimate(f, both)
        assert second.mcse < first.mcse
        assert np.abs(second.value - truth) < 4 * second.mcse


class TestErrorBar:
    def test_what_training_points_show_beyond_the_draws_is_in_it(self) -> None:
        problem, _ = prepare(integrands(F, BOTH), BOTH, sx.Polynomial(2), None, None)
        order, folds, draw = with_training(sx.CrossFit().boundaries(4, 25), 300)
        held = Exact().crossfit(problem.take(order), folds)
        share = typical_share(problem.x[order], draw)
        beyond = held.on_draws(draw, share).excess
        assert beyond[1] > 0
        alone = replace(held.on_draws(draw, None), beside=None)
        wanted = sx.data.Integrands(integrands(F, SAMPLE).values, tuple(F))
        without = sx.Estimate.from_held_out(with_moves(alone, None), wanted, ("",) * 3).mcse
        found = sx.estimate(F, BOTH, sx.Polynomial(2)).mcse
        assert np.allclose(found**2, without**2 + beyond / 100, rtol=1e-6)

    def test_intervals_hold(self) -> None:
        """20 replicates of three integrands: fewer than 40 intervals of 60 at 95% never hold."""
        held = 0
        for seed in range(20):
            sample = wave(chains(100 + seed, 25)).with_training(wave(chains(200 + seed, 75)))
            found = sx.estimate(F, sample, sx.Polynomial(1) + sx.KernelTranslates(), audit="off")
            held += int((np.abs(found.value - WAVE) < 2 * found.mcse).sum())
        assert held > 48


class TestElsewhere:
    def test_a_summary_uses_them(self) -> None:
        alone, both = sx.summary(SAMPLE), sx.summary(BOTH)
        assert np.all(both["mcse_mean"] < 0.7 * alone["mcse_mean"])
        assert np.array_equal(both["plain_mean"], alone["plain_mean"])
        assert "300 training points" in both.attrs["steinax"]

    def test_predictions_use_them(self) -> None:
        alone, both = (
            sx.predictive(lambda x: stats.norm(x[1], 1.0), sample) for sample in (SAMPLE, BOTH)
        )
        assert both.mean().mcse < 0.7 * alone.mean().mcse
        assert both.sd().mcse < 0.7 * alone.sd().mcse
        assert np.abs(both.sd().value - np.sqrt(WAVE[1] + 1 - WAVE[0] ** 2)) < 4 * both.sd().mcse

    def test_weights_are_those_of_the_draws_alone(self) -> None:
        alone, both = (sx.weigh(sample, sx.Polynomial(2)) for sample in (SAMPLE, BOTH))
        assert np.array_equal(alone.weights, both.weights)

    def test_the_audit_looks_at_the_draws(self) -> None:
        wrong = sx.Sample(TRAINING.draws, 0.5 * TRAINING.scores)
        assert sx.audit(SAMPLE.with_training(wrong)).passed


def errors(rho: float, replicates: int, *, leak: bool = False) -> np.ndarray:
    """Errors of 4 x 25 draws after 4 x 100 of the same chains, (replicate, k)."""
    found = []
    for seed in range(replicates):
        whole = banana(chains(1000 + seed, 125, rho))
        draws = whole[:, 100:]
        if leak:  # a neighbour of every draw is a training point, held out with another fold
            x, score = (np.roll(array, 50, axis=0) for array in (draws.x, draws.score))
            sample = draws.with_training(sx.Sample(x + 1e-9, score))
        else:
            sample = with_warmup(draws, whole[:, :100])
        found.append(sx.estimate(F, sample, KERNEL, audit="off").value - BANANA)
    return np.array(found)


def standardised(error: np.ndarray) -> np.ndarray:
    return error.mean(axis=0) / (error.std(axis=0) / np.sqrt(len(error)))


@pytest.mark.slow
class TestBias:
    """Nine tests at four standard errors: a false alarm in 1,800 runs of other seeds."""

    @pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
    def test_the_warmup_of_the_same_chains_leaves_none(self, rho: float) -> None:
        assert np.all(np.abs(standardised(errors(rho, 150))) < 4)

    def test_draws_that_train_their_own_control_variate_are_noticed(self) -> None:
        assert np.abs(standardised(errors(0.0, 60, leak=True))).max() > 4


def test_few_draws_beside_many_training_points_in_many_dimensions() -> None:
    """Candidates are selected on a part of the rows, which must include draws to judge them by."""
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(4, 15, 40)), rng.normal(size=(1, 7000, 40))
    sample, both = sx.Sample(x, -x), sx.Sample(x, -x, training=sx.Sample(y, -y))
    f = {"product": lambda x: x[1] * x[2], "cosine": lambda x: jnp.cos(x[1] + x[2])}
    alone, result = (sx.estimate(f, each, audit="off") for each in (sample, both))
    assert (result.mcse < 0.8 * alone.mcse).all()
    assert (np.abs(result.value - [0.0, np.exp(-1)]) < 4 * result.mcse).all()
    index, folds = thinned(((0, 1000), (1000, 2000)), 40, draw=np.arange(2000) % 250 == 7)
    assert sum(index % 250 == 7) == 8 and folds == ((0, 20), (20, 40))
    assert len(np.unique(index)) == 40


def log_gammas(x: np.ndarray) -> sx.Sample:
    """Six independent logarithms of Gamma(9) variables."""
    return sx.Sample(x, 9.0 - np.exp(x))


LOG_GAMMAS = {
    "mean": lambda x: x[0],
    "product": lambda x: x[0] * x[1],
    "cosh": lambda x: jnp.cosh(x[2]),
}


class TestTried:
    def test_fresh_points_are_used_where_they_help(self) -> None:
        """Over 30 replicates of 100 draws; calibration has a standard error of 0.1 at most."""
        rng = np.random.default_rng(8)
        alone, trained, z = [], [], []
        mean = float(special.digamma(9.0))
        cosh = (9.0 + 1 / 8.0) / 2
        for _ in range(30):
            sample = log_gammas(np.log(rng.gamma(9.0, size=(4, 25, 6))))
            fresh = log_gammas(fresh_points(sample, 400))
            family = sx.Polynomial(3)
            first = sx.estimate(LOG_GAMMAS, sample, family, audit="off")
            both = sample.with_training(tried=fresh)
            result = sx.estimate(LOG_GAMMAS, both, family, audit="off")
            truth = np.array([mean, mean**2, cosh])
            alone.append(first.value - truth)
            trained.append(result.value - truth)
            z.append((result.value - truth) / result.mcse)
            assert "400 fresh training points tried, and used for" in result.note
            assert (result.mcse <= first.mcse).all()
        ratio = np.mean(np.square(alone), axis=0) / np.mean(np.square(trained), axis=0)
        assert (ratio > 10).all()
        assert 0.6 < np.sqrt(np.mean(np.square(z))) < 1.4

    def test_points_that_do_not_help_are_not_used(self) -> None:
        wrong = sx.Sample(TRAINING.draws, np.roll(TRAINING.scores, 7, axis=1))
        result = sx.estimate(F, SAMPLE.with_training(tried=wrong), sx.Polynomial(2))
        plain = sx.estimate(F, SAMPLE, sx.Polynomial(2))
        assert np.array_equal(result.value, plain.value) and np.array_equal(result.mcse, plain.mcse)
        assert "300 fresh training points tried, and used for none" in result.note
        assert result.audit is not None and result.audit.passed

    def test_each_integrand_is_judged_by_itself(self) -> None:
        sample = SAMPLE.with_training(tried=TRAINING)
        first, second = (sx.estimate(F, each, KERNEL, audit="off") for each in (SAMPLE, BOTH))
        result = sx.estimate(F, sample, KERNEL)
        better = second.mcse < first.mcse
        assert np.array_equal(result.value, np.where(better, second.value, first.value))
        assert np.array_equal(result.batches, np.where(better, second.batches, first.batches))
        by_name = sx.estimate("x", sample.with_training(BOTH, tried=TRAINING), sx.Polynomial(1))
        assert "training points besides the draws" in by_name.note and "tried" in by_name.note
