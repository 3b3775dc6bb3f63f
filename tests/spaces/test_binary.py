"""Binary vectors: Glauber operators by exact sums, known answers, audits and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from spaces import discrete_targets as targets
from steinax._numerics import precision
from steinax.families import AbstractLinearFamily
from steinax.kernels._base import autodiff_stein
from steinax.spaces import Glauber, Hamming, Multilinear, ScalarGlauber

BINARY = sx.spaces.Binary()


def _points(n: int = 12) -> tuple[jax.Array, jax.Array]:
    target = targets.ising()
    x = target.draw(np.random.default_rng(0), n)
    return jnp.asarray(x), jnp.asarray(target.score(x))


class TestOperators:
    def test_one_function_for_all_coordinates_is_the_scalar_form(self) -> None:
        with precision(np.float64):
            x, score = (one[0] for one in _points())

            def v(x):
                return jnp.stack([jnp.cos(x).sum(), x[0] * x[1]])

            def field(x):
                return jnp.repeat(v(x)[:, None], len(x), axis=1)

            np.testing.assert_allclose(
                ScalarGlauber()(v, x, score), Glauber()(field, x, score), 1e-12
            )

    @pytest.mark.parametrize("degree", [1, 2, 3])
    def test_the_features_of_products_in_closed_form(self, degree: int) -> None:
        family = Multilinear(degree)
        with precision(np.float64):
            for x, score in zip(*_points(), strict=True):
                default = AbstractLinearFamily.features(family, None, x, score)
                np.testing.assert_allclose(family.features(None, x, score), default, atol=1e-12)
                assert default.shape == (family.size(None, 6),)

    def test_products_have_mean_zero(self) -> None:
        target = targets.ising()
        with precision(np.float64):
            columns = Multilinear(3).feature_matrix(None, target.nodes, target.score(target.nodes))
        np.testing.assert_allclose(target.weights @ np.asarray(columns), 0, atol=1e-14)

    def test_the_kernel_in_closed_form_is_that_of_its_flips(self) -> None:
        kernel = Hamming(2.0)
        with precision(np.float64):
            x, score = _points()
            for i in range(6):
                pair = (Glauber(), x[i], score[i], x[-i], score[-i])
                np.testing.assert_allclose(
                    kernel.stein(*pair), autodiff_stein(kernel, *pair), 1e-10
                )

    def test_ratios_of_any_size_give_numbers(self) -> None:
        with precision(np.float64):
            score = 1 - jnp.array([0.0, 1e12])
            value = Glauber()(lambda x: x, jnp.array([0.0, 1.0]), score)
        np.testing.assert_allclose(value, -1.0, rtol=1e-11)


class TestKnownAnswers:
    def test_marginals_of_coins_are_exact(self) -> None:
        f = {"x": "x", "both": lambda x: x[0] * x[1]}
        est = sx.estimate(f, targets.coins().sample(0), Multilinear(2))
        np.testing.assert_allclose(est.value, [0.2, 0.7, 0.5, 0.14], atol=1e-10)

    def test_dependent_columns_are_coped_with(self) -> None:
        """Squares of coordinates are the coordinates themselves."""
        family = sx.Polynomial(2, operator=ScalarGlauber())
        est = sx.estimate("x", targets.coins().sample(0), family)
        np.testing.assert_allclose(est.value, [0.2, 0.7, 0.5], atol=1e-10)

    def test_an_ising_ring_gains(self) -> None:
        target = targets.ising(8)
        est = sx.estimate({"pair": lambda x: x[0] * x[3]}, target.sample(0))
        exact = target.mean(lambda x: x[:, 0] * x[:, 3])
        assert abs(est.value[0] - exact) < 5 * est.mcse[0] + 1e-9
        assert est.worth[0] > 50

    def test_more_functions_than_states_are_not_fitted(self) -> None:
        """Every integrand would be met exactly on the states that were seen, and the error bar be zero."""
        draws = np.random.default_rng(0).choice([0.0, 1.0], size=(4, 50, 1)).repeat(5, axis=2)
        sample = sx.Sample(draws, 0 * draws, space=BINARY)
        est = sx.estimate("x", sample, audit="off")
        assert np.array_equal(est.value, est.plain_value)
        assert set(est.chosen) == {"plain Monte Carlo"}
        with pytest.raises(ValueError, match="2 distinct states, too few"):
            sx.weigh(sample, audit="off")


class TestScores:
    def test_are_ratios_of_the_mass_function(self) -> None:
        target = targets.ising()
        field, coupling = np.linspace(-0.3, 0.4, 6), 0.3

        def log_pmf(x):
            spin = 2 * x - 1
            return coupling * jnp.sum(spin * jnp.roll(spin, 1)) + field @ spin

        sample = target.sample(0)
        np.testing.assert_allclose(BINARY.scores(log_pmf, sample.draws), sample.scores, atol=1e-12)

    def test_a_state_that_cannot_be_is_no_neighbour(self) -> None:
        """Hard constraints: its ratio is zero, and the score 1."""
        scores = BINARY.scores(lambda x: jnp.where(x.sum() > 1, -jnp.inf, 0.0), [[1.0, 0.0]])
        assert scores.tolist() == [[0.0, 1.0]]


class TestAudit:
    """Right scores: once in 50,000 audits by design. Wrong ones are off by ten errors and more."""

    def test_right_scores_pass(self) -> None:
        for make in (targets.ising, targets.coins):
            assert all(sx.audit(make().sample(seed)).passed for seed in range(20))

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda x: 1 - 1 / (1 - targets.ising().score(x)),  # the inverse ratio
            lambda x: -targets.ising().score(x),
            targets.ising(coupling=0.2).score,
            lambda x: np.roll(targets.ising().score(x), 1, axis=-1),
        ],
        ids=["inverse", "sign", "coupling", "order"],
    )
    def test_wrong_scores_are_refused(self, wrong) -> None:
        draws = targets.ising().sample(0, length=1000).draws
        assert not sx.audit(sx.Sample(draws, wrong(draws), space=BINARY)).passed


@pytest.mark.parametrize(
    ("value", "hint"), [(2.0, "leave them out"), (-1.0, r"\(draws \+ 1\) / 2")]
)
def test_draws_that_are_not_binary_are_refused(value: float, hint: str) -> None:
    draws = np.ones((4, 10, 2))
    draws[1, 3, 1] = value
    with pytest.raises(
        ValueError, match=rf"1 draws are not of 0 and 1, first in column 1 .*{hint}"
    ):
        sx.Sample(draws, draws, space=BINARY)


def test_a_family_of_fields_takes_no_potentials() -> None:
    with pytest.raises(ValueError, match=r"use operator=Glauber\(\)"):
        Multilinear(2, ScalarGlauber())
    with pytest.raises(ValueError, match="1 or more"):
        Multilinear(0)


def test_counts_and_binary_vectors_are_kept_apart() -> None:
    sample = targets.coins().sample(0)
    with pytest.raises(TypeError, match="mean zero on counts, and the draws live on binary"):
        sx.estimate("x", sample, sx.Polynomial(1, operator=sx.spaces.BirthDeath()))
