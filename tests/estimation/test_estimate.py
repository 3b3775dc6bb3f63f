"""What an estimate holds, prints, and leaves alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arviz_stats.base import array_stats

import steinax as sx
import targets

TARGET = targets.banana(3)
SAMPLE = TARGET.sample(0, chains=4, length=100, names=["mu", "beta[0]", "beta[1]"])
FOUND = sx.estimate(TARGET.functions, SAMPLE)


class TestNumbers:
    def test_plain_columns_are_those_of_arviz(self) -> None:
        values = sx.data.integrands(TARGET.functions, SAMPLE).values
        np.testing.assert_allclose(FOUND.plain_value, values.mean((0, 1)), rtol=1e-13)
        for k in range(values.shape[-1]):
            expected = array_stats.mcse(values[..., k], method="mean")
            np.testing.assert_allclose(FOUND.plain_mcse[k], expected, rtol=1e-12)

    def test_answers_are_within_their_errors(self) -> None:
        """6 standard errors, five integrands: 1e-8 false alarms."""
        assert np.all(np.abs(FOUND.value - TARGET.expectations) < 6 * FOUND.mcse)

    def test_errors_are_smaller_than_plain_ones(self) -> None:
        first = FOUND["second"]
        assert first.mcse < first.plain_mcse / 2

    def test_worth_is_the_squared_ratio_of_errors(self) -> None:
        np.testing.assert_allclose(FOUND.worth, (FOUND.plain_mcse / FOUND.mcse) ** 2, rtol=1e-13)

    def test_same_input_same_bits(self) -> None:
        again = sx.estimate(TARGET.functions, SAMPLE)
        np.testing.assert_array_equal(again.value, FOUND.value)
        np.testing.assert_array_equal(again.mcse, FOUND.mcse)

    def test_in_sample_has_no_error_and_says_why(self) -> None:
        found = sx.estimate("mu", SAMPLE, sx.Polynomial(2), split=sx.InSample())
        assert np.isnan(found.mcse).all()
        assert np.isnan(found.worth).all()
        assert "fitted to the draws it is averaged over" in found.reason
        assert FOUND.reason is None
        assert "use CrossFit() to have one" in repr(found)


class TestNames:
    def test_by_name(self) -> None:
        one = FOUND["square"]
        assert one.names == ("square",)
        assert one.value == FOUND.value[2]
        assert len(FOUND) == 5

    def test_by_place(self) -> None:
        for place in (2, np.int64(2), np.array(2), -3):
            assert FOUND[place].names == ("square",)
        assert [one.names for one in FOUND] == [(name,) for name in FOUND.names]

    def test_unknown_name_lists_the_known_ones(self) -> None:
        with pytest.raises(KeyError, match="no integrand is called 'tau': there are first, second"):
            FOUND["tau"]

    def test_names_of_vectors(self) -> None:
        assert sx.estimate("beta", SAMPLE).names == ("beta[0]", "beta[1]")


class TestPrint:
    def test_shows_every_column_and_how_it_was_done(self) -> None:
        text = repr(FOUND)
        for word in ("value", "mcse", "plain", "worth", "ess", "rhat", *FOUND.names):
            assert word in text
        assert "24 folds" in text
        own = sx.estimate(TARGET.functions, SAMPLE, sx.Polynomial(2))
        assert "Polynomial(2), 8 folds" in repr(own)

    def test_long_tables_are_cut(self) -> None:
        found = sx.estimate({"f": lambda x: jnp.arange(30) * x[0]}, SAMPLE)
        assert "... and 10 more: estimate[name] has each" in repr(found).splitlines()

    def test_one_integrand_prints_too(self) -> None:
        assert "square" in repr(FOUND["square"])


class TestScale:
    def test_a_thousand_integrands_are_one_call(self) -> None:
        """Each of them is what it would be alone."""
        slopes = jnp.linspace(0.1, 2.0, 1000)
        family = sx.Polynomial(2)
        many = sx.estimate({"f": lambda x: jnp.sin(slopes * x[1])}, SAMPLE, family)
        assert len(many) == 1000
        for k in (0, 517, 999):
            alone = sx.estimate(lambda x, k=k: jnp.sin(slopes[k] * x[1]), SAMPLE, family)
            np.testing.assert_allclose(many.value[k], alone.value[0], rtol=0, atol=1e-10)
            np.testing.assert_allclose(many.mcse[k], alone.mcse[0], rtol=1e-8)

    def test_arrays_are_estimated_like_functions(self) -> None:
        values = sx.data.integrands(TARGET.functions, SAMPLE).values
        np.testing.assert_allclose(
            sx.estimate(values, SAMPLE).value, FOUND.value, rtol=0, atol=1e-13
        )

    def test_float32_gives_the_same_to_four_digits(self) -> None:
        small = TARGET.sample(0, chains=4, length=100, dtype=np.float32)
        found = sx.estimate(TARGET.functions, small)
        assert found.value.dtype in (np.float32, np.float64)
        np.testing.assert_allclose(found.value, FOUND.value, rtol=0, atol=1e-4)


class TestLeavesAlone:
    def test_the_draws_and_jax_settings_of_the_caller(self) -> None:
        before, draws = dict(jax.config.values), SAMPLE.draws.copy()
        sx.estimate("mu", SAMPLE)
        sx.fit("mu", SAMPLE, sx.Polynomial(1))
        assert dict(jax.config.values) == before
        assert jnp.asarray(1.0).dtype == jnp.float32
        np.testing.assert_array_equal(SAMPLE.draws, draws)

    def test_double_precision_of_the_caller(self) -> None:
        with jax.enable_x64(True):
            found = sx.estimate("mu", SAMPLE)
            assert jnp.asarray(1.0).dtype == jnp.float64
        np.testing.assert_array_equal(found.value, sx.estimate("mu", SAMPLE).value)

    def test_a_failed_call_leaves_the_precision_alone(self) -> None:
        with pytest.raises(ValueError, match="no dimension is called"):
            sx.estimate("tau", SAMPLE)
        assert jnp.asarray(1.0).dtype == jnp.float32


class TestRefuses:
    """Every message names what is wrong and what to do next."""

    def test_a_dimension_that_never_moves(self) -> None:
        x = SAMPLE.draws.copy()
        x[..., 2] = 1.0
        with pytest.raises(ValueError, match=r"never change: x\[2\].*leave those columns out"):
            sx.estimate("x", sx.Sample(x, SAMPLE.scores))

    def test_penalties_that_do_not_fit_the_terms(self) -> None:
        with pytest.raises(ValueError, match="one for each term of the sum, in order"):
            sx.estimate("mu", SAMPLE, sx.Polynomial(2), penalty=[sx.NoPenalty()] * 2)

    def test_draws_of_another_dimension_for_a_fitted_control_variate(self) -> None:
        g = sx.fit("mu", SAMPLE, sx.Polynomial(1))
        with pytest.raises(ValueError, match="both must end in 3"):
            g(np.zeros((5, 2)), np.zeros((5, 2)))

    def test_a_network_for_an_exact_solver(self) -> None:
        with pytest.raises(TypeError, match="use the Stochastic solver"):
            sx.fit("mu", SAMPLE, sx.Network(), solver=sx.Exact())
