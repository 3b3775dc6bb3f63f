"""Integrands by name, by function and by array, and what is said of those that cannot be used."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx

X = np.random.default_rng(0).normal(size=(2, 50, 4))
SAMPLE = sx.Sample(X, -X, names=["mu", "beta[0]", "beta[1]", "betamax"])


class TestAccepts:
    def test_a_dimension(self) -> None:
        found = sx.data.integrands("mu", SAMPLE)
        assert found.names == ("mu",)
        np.testing.assert_array_equal(found.values, X[..., :1])

    def test_a_vector_of_dimensions(self) -> None:
        found = sx.data.integrands("beta", SAMPLE)
        assert found.names == ("beta[0]", "beta[1]")
        np.testing.assert_array_equal(found.values, X[..., 1:3])

    def test_a_label_renames_a_vector(self) -> None:
        assert sx.data.integrands({"b": "beta"}, SAMPLE).names == ("b[0]", "b[1]")

    def test_several_names(self) -> None:
        assert sx.data.integrands(["mu", "betamax"], SAMPLE).names == ("mu", "betamax")

    def test_a_function_of_one_draw(self) -> None:
        found = sx.data.integrands(lambda x: jnp.sum(x**2), SAMPLE)
        assert found.names == ("f",)
        np.testing.assert_allclose(found.values[..., 0], (X**2).sum(-1), rtol=1e-14)

    def test_a_function_that_gives_an_array(self) -> None:
        found = sx.data.integrands({"outer": lambda x: jnp.outer(x[:2], x[:2])}, SAMPLE)
        assert found.names == ("outer[0, 0]", "outer[0, 1]", "outer[1, 0]", "outer[1, 1]")
        np.testing.assert_allclose(found.values[..., 1], X[..., 0] * X[..., 1], rtol=1e-14)

    def test_a_function_made_of_numpy(self) -> None:
        found = sx.data.integrands(lambda x: np.asarray(x).max(), SAMPLE)
        np.testing.assert_array_equal(found.values[..., 0], X.max(-1))

    def test_a_function_computes_in_double_precision(self) -> None:
        found = sx.data.integrands(lambda x: 1.0 + 1e-12 * x[0], SAMPLE)
        np.testing.assert_array_equal(found.values[..., 0], 1.0 + 1e-12 * X[..., 0])

    @pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
    def test_an_array(self, wrap) -> None:
        values = (X[..., :2] > 0).astype(np.float32)
        found = sx.data.integrands({"positive": wrap(values)}, SAMPLE)
        assert found.names == ("positive[0]", "positive[1]")
        np.testing.assert_array_equal(found.values, values)

    def test_an_array_of_one_integrand(self) -> None:
        assert sx.data.integrands(X[..., 0], SAMPLE).values.shape == (2, 50, 1)

    def test_integrands_are_taken_as_they_are(self) -> None:
        made = sx.data.integrands("mu", SAMPLE)
        assert sx.data.integrands(made, SAMPLE) is made


class TestRefuses:
    """Every message names what is wrong and what to do next."""

    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("log_likelihood/y", r"pm\.compute_log_likelihood\(trace\)"),
            ("theta.2", r"Stan's theta\.2 is theta\[1\] here"),
        ],
    )
    def test_an_unknown_name_with_a_hint(self, name: str, hint: str) -> None:
        with pytest.raises(ValueError, match=hint):
            sx.data.integrands(name, SAMPLE)

    def test_an_unknown_name(self) -> None:
        with pytest.raises(
            ValueError, match=r"no dimension is called 'tau'.*mu, .*Use one of these"
        ):
            sx.data.integrands("tau", SAMPLE)

    def test_an_array_of_another_shape(self) -> None:
        with pytest.raises(ValueError, match=r"'f' has shape \(50, 2\).*must be \(chain, draw\)"):
            sx.data.integrands({"f": X[0, :, :2]}, SAMPLE)

    def test_nothing(self) -> None:
        with pytest.raises(ValueError, match=r"name a dimension, or give a function or an array"):
            sx.data.integrands({}, SAMPLE)

    def test_a_function_that_is_not_finite_everywhere(self) -> None:
        with pytest.raises(ValueError, match=r"'log' is not finite.*Correct the function"):
            sx.data.integrands({"mu": "mu", "log": lambda x: jnp.log(x[0])}, SAMPLE)

    def test_integrands_of_another_sample(self) -> None:
        other = sx.data.integrands("x", sx.Sample(X[:, :10], -X[:, :10]))
        with pytest.raises(ValueError, match=r"\(chain, draw\)|another sample"):
            sx.data.integrands(other, SAMPLE)


class TestNamedX:
    """An argument called x stands for the whole draw; a variable may have that name too."""

    DRAWS = np.random.default_rng(0).normal(size=(2, 50, 2))
    SAMPLE = sx.Sample(DRAWS, -DRAWS, names=["x", "y"])

    def _values(self, f, sample: sx.Sample = SAMPLE) -> np.ndarray:
        return sx.data.integrands(f, sample).values

    def test_a_function_of_it_alone_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"lambda x, /: .* lambda \*, x: "):
            self._values(lambda x: (x**2).sum())

    def test_both_meanings_can_be_written(self) -> None:
        whole, variable = self._values(lambda x, /: (x**2).sum()), self._values(lambda *, x: x**2)
        np.testing.assert_allclose(whole[..., 0], (self.DRAWS**2).sum(axis=-1))
        np.testing.assert_allclose(variable[..., 0], self.DRAWS[..., 0] ** 2)

    def test_nothing_is_ambiguous_where_it_is_all_of_the_draw(self) -> None:
        alone = sx.Sample(self.DRAWS[..., :1], -self.DRAWS[..., :1], names=["x"])
        np.testing.assert_allclose(self._values(lambda x: x**2, alone), self.DRAWS[..., :1] ** 2)

    def test_several_arguments_are_variables(self) -> None:
        found = self._values(lambda x, y: x - y)
        np.testing.assert_allclose(found[..., 0], self.DRAWS[..., 0] - self.DRAWS[..., 1])
