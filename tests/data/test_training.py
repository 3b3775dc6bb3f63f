"""Training points of a sample: which are used, and on which the integrands are evaluated."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import steinax as sx
from steinax.data import covariance_of, fresh_points, integrands, kept_training, with_warmup

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 50, 2))
T = RNG.normal(size=(2, 100, 2))
NAMES = ["mu", "log_tau"]
SAMPLE = sx.Sample(X, -X, NAMES)
TRAINING = sx.Sample(T, -T, NAMES)
BOTH = SAMPLE.with_training(TRAINING)


def autocorrelated(rho: float, length: int) -> np.ndarray:
    z = np.random.default_rng(1).normal(size=(4, length, 2))
    for i in range(1, length):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * z[:, i]
    return z


class TestSample:
    def test_one_sample_or_several(self) -> None:
        one = sx.Sample(X, -X, NAMES, training=TRAINING)
        two = sx.Sample(X, -X, NAMES, training=[TRAINING, TRAINING[:, :10]])
        assert [part.size for part in one.training] == [200]
        assert [part.size for part in two.training] == [200, 20]
        assert repr(one).endswith("log_tau, 200 training points)")

    def test_training_points_of_another_run_are_used_too(self) -> None:
        assert [part.size for part in SAMPLE.with_training(BOTH).training] == [200, 200]

    def test_selecting_draws_keeps_them(self) -> None:
        assert np.array_equal(BOTH[:2, ::5].training[0].draws, T)
        assert BOTH.with_training().training == ()

    @pytest.mark.parametrize(
        ("training", "error", "words"),
        [
            (sx.Sample(T, -T), ValueError, "same names"),
            (T, TypeError, r"Sample\(draws, scores\)"),
            (
                sx.Sample(1 / (1 + np.exp(-T)), -T, NAMES, space=sx.spaces.Box(0.0, 1.0)),
                ValueError,
                "same space",
            ),
        ],
    )
    def test_others_are_refused_with_advice(self, training, error, words) -> None:
        with pytest.raises(error, match=words):
            sx.Sample(X, -X, NAMES, training=training)


class TestRegion:
    def test_points_far_outside_the_draws_are_left_out_and_that_is_said(self) -> None:
        far = T.copy()
        far[0, :7, 1] = 60.0
        sample = SAMPLE.with_training(sx.Sample(far, -np.clip(far, -4, 4), NAMES))
        (kept,) = kept_training(sample)
        assert kept.sum() == 193 and not kept[:7].any()
        note = sx.estimate("mu", sample, sx.Polynomial(1)).note
        assert "193 training points besides the draws; 7 left out: too far from the draws" in note

    def test_a_score_far_beyond_those_of_the_draws_counts_as_far(self) -> None:
        scores = -T.copy()
        scores[1, 3, 0] = 1e3
        (kept,) = kept_training(SAMPLE.with_training(sx.Sample(T, scores, NAMES)))
        assert np.flatnonzero(~kept).tolist() == [103]

    @pytest.mark.parametrize(("n", "dim"), [(40, 3), (250, 3), (50, 60)])
    def test_a_point_beside_a_narrow_ridge_counts_as_far(self, n: int, dim: int) -> None:
        rng = np.random.default_rng(dim)
        ridge = np.eye(dim)
        ridge[1, :2] = 1.0, 0.02  # the second coordinate hardly differs from the first
        x, t = rng.normal(size=(4, n, dim)) @ ridge.T, rng.normal(size=(1, 100, dim)) @ ridge.T
        t[0, :5, :2] = [
            2.5,
            -2.5,
        ]  # 250 standard deviations from it, each coordinate within its span
        inverse = np.linalg.inv(ridge @ ridge.T)
        sample = sx.Sample(x, -x @ inverse, training=sx.Sample(t, -t @ inverse))
        (kept,) = kept_training(sample)
        assert np.flatnonzero(~kept).tolist() == [0, 1, 2, 3, 4]

    def test_points_computed_along_with_the_draws_are_left_out_and_that_is_said(self) -> None:
        along = np.concatenate([T[:1], X[:1, :1]], axis=1)
        sample = SAMPLE.with_training(TRAINING, sx.Sample(along, -along, NAMES))
        first, second = kept_training(sample)
        assert first.all() and not second.any()
        note = sx.estimate("mu", sample, sx.Polynomial(1)).note
        assert "200 training points besides the draws; 101 left out: some of them are draws" in note

    def test_draws_of_the_target_are_all_used(self) -> None:
        assert all(kept.all() for kept in kept_training(BOTH))


class TestWarmup:
    def test_the_first_fifth_and_the_last_autocorrelation_times_are_left_out(self) -> None:
        x = autocorrelated(0.0, 300)
        whole = sx.Sample(x, -x)
        (training,) = with_warmup(whole[:, 200:], whole[:, :200]).training
        assert np.array_equal(training.draws[:, 0], x[:, 40])
        assert training.draws.shape[1] + 40 in range(190, 197)  # a gap of four to ten draws

    def test_the_gap_grows_with_the_autocorrelation(self) -> None:
        x = autocorrelated(0.9, 1200)  # 19 draws per independent one
        whole = sx.Sample(x, -x)
        (training,) = with_warmup(whole[:, 800:], whole[:, :800]).training
        gap = 800 - 160 - training.length
        assert 4 * 12 < gap < 4 * 30

    def test_none_or_too_short_a_warmup_changes_nothing(self) -> None:
        assert with_warmup(SAMPLE, None) is SAMPLE
        assert with_warmup(SAMPLE, TRAINING[:, :4]) is SAMPLE


class TestIntegrands:
    def test_names_and_functions_are_evaluated_on_them(self) -> None:
        wanted = integrands({"mu": "mu", "tau": lambda log_tau: 2 * jnp.exp(log_tau)}, BOTH)
        flat = T.reshape(-1, 2)
        assert np.allclose(wanted.training, np.stack([flat[:, 0], 2 * np.exp(flat[:, 1])], axis=1))
        assert np.array_equal(wanted.rows[:200], wanted.values.reshape(-1, 2))
        assert np.array_equal(wanted.rows[200:], wanted.training)

    def test_variables_are_those_of_the_training_points(self) -> None:
        def with_tau(x: np.ndarray) -> sx.Sample:
            tau = xarray.Dataset({"tau": (("chain", "draw"), np.exp(x[..., 1]))})
            return sx.Sample(x, -x, NAMES, variables=tau)

        wanted = integrands("tau", with_tau(X).with_training(with_tau(T)))
        assert np.array_equal(wanted.training[:, 0], np.exp(T.reshape(-1, 2)[:, 1]))

    def test_several_samples_follow_each_other(self) -> None:
        wanted = integrands("mu", SAMPLE.with_training(TRAINING, TRAINING[:1, :5]))
        assert np.array_equal(wanted.training[:200, 0], T[..., 0].ravel())
        assert np.array_equal(wanted.training[200:, 0], T[0, :5, 0])

    def test_arrays_are_estimated_without_and_that_is_said(self) -> None:
        alone = sx.estimate({"f": X[..., 0] ** 2}, SAMPLE, sx.Polynomial(1))
        result = sx.estimate({"f": X[..., 0] ** 2}, BOTH, sx.Polynomial(1))
        assert result.value == alone.value and result.mcse == alone.mcse
        assert "training points not used: 'f' is an array" in result.note

    def test_a_variable_that_they_lack_is_estimated_without_and_that_is_said(self) -> None:
        tau = xarray.Dataset({"tau": (("chain", "draw"), np.exp(X[..., 1]))})
        sample = sx.Sample(X, -X, NAMES, variables=tau)
        result = sx.estimate("tau", sample.with_training(TRAINING), sx.Polynomial(2))
        assert result.value == sx.estimate("tau", sample, sx.Polynomial(2)).value
        assert "training points not used: they do not have all that tau needs" in result.note

    def test_one_that_is_not_finite_there_is_refused_with_advice(self) -> None:
        hole = float(T[1, 7, 0])
        with pytest.raises(ValueError, match=r"'f' is not finite on 1 of 200 .*with_training"):
            sx.estimate(lambda x: 1 / (x[0] - hole), BOTH, sx.Polynomial(1))

    def test_evaluated_integrands_of_other_training_points_are_refused(self) -> None:
        wanted = integrands("mu", BOTH)
        with pytest.raises(ValueError, match="200 training points, and the sample has 20"):
            sx.estimate(wanted, SAMPLE.with_training(TRAINING[:, :10]), sx.Polynomial(1))


class TestFreshPoints:
    def test_are_kept_apart_from_training_points(self) -> None:
        sample = SAMPLE.with_training(TRAINING, tried=TRAINING[:, :10])
        assert sample.training == (TRAINING,) and [part.size for part in sample.tried] == [20]
        assert repr(sample).endswith("200 training points, 20 to be tried)")
        assert sample[:2].tried == sample.tried
        assert SAMPLE.with_training(sample).training == (TRAINING, SAMPLE)
        assert sample.with_training(TRAINING).tried == ()
        assert kept_training(sample)[0].size == 200 and len(kept_training(sample)) == 1

    def test_have_the_mean_and_covariance_of_a_gaussian_from_few_draws(self) -> None:
        rng = np.random.default_rng(5)
        factor, mean = rng.normal(size=(20, 20)), rng.normal(size=20)
        x = mean + rng.normal(size=(31, 20)) @ factor.T
        precision = np.linalg.inv(factor @ factor.T)
        found, covariance = covariance_of(x, -(x - mean) @ precision)
        np.testing.assert_allclose(found, mean, atol=1e-6)
        np.testing.assert_allclose(covariance, factor @ factor.T, rtol=1e-5, atol=1e-5)
        z = fresh_points(sx.Sample(x, -(x - mean) @ precision), 4000)
        white = np.linalg.solve(factor, (z - mean).T)
        # 210 entries with standard deviations of 0.016 and 0.022: 0.1 is 4.5 of the larger
        np.testing.assert_allclose(np.cov(white), np.eye(20), atol=0.1)

    def test_scale_each_dimension_if_there_are_fewer_draws(self) -> None:
        x = np.random.default_rng(6).normal(size=(20, 30)) * np.arange(1, 31)
        mean, covariance = covariance_of(x, -x / np.arange(1, 31) ** 2)
        np.testing.assert_allclose(np.diag(covariance), np.arange(1, 31) ** 2)
        assert np.count_nonzero(covariance) == 30
        np.testing.assert_allclose(mean, 0.0, atol=1e-9)
