"""Spheres: known answers, harmonics, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import steinax as sx
from steinax._numerics import precision
from steinax.spaces import SphereLangevin, SphericalPolynomial

SPHERE = sx.spaces.Sphere()


def _unit(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class TestKnownAnswers:
    @pytest.mark.parametrize("dim", [2, 3, 5])
    def test_uniform_squares(self, dim: int) -> None:
        x = _unit((4, 100, dim))
        sample = sx.Sample(x, 0 * x, space=SPHERE)
        est = sx.estimate(lambda x: x**2, sample, SphericalPolynomial(2))
        assert np.allclose(est.value, 1 / dim, atol=1e-12)

    def test_redundant_columns_do_no_harm(self) -> None:
        """The columns of `Polynomial` depend on each other on the sphere."""
        x = _unit((4, 100, 3))
        family = sx.Polynomial(2, operator=SPHERE.potential_operator)
        est = sx.estimate(lambda x: x[0] ** 2, sx.Sample(x, 0 * x, space=SPHERE), family)
        assert np.allclose(est.value, 1 / 3, atol=1e-8)

    def test_mean_resultant_length(self) -> None:
        """Of von Mises-Fisher, kappa 2: coth 2 - 1/2. With degree 8 the fit is nearly exact."""
        mean = np.array([1.0, 2.0, 2.0]) / 3
        x = stats.vonmises_fisher(mean, 2.0).rvs(1000, random_state=np.random.default_rng(0))
        x = x.reshape(4, 250, 3)
        sample = sx.Sample(x, 2.0 * mean + 0 * x, space=SPHERE)
        est = sx.estimate({"length": x @ mean}, sample, SphericalPolynomial(8))
        exact = 1 / np.tanh(2.0) - 0.5
        assert abs(est.value[0] - exact) < 5 * est.mcse[0]
        assert est.mcse[0] < 1e-4 * est.plain_mcse[0]

    @pytest.mark.parametrize(("degree", "dim"), [(1, 3), (2, 3), (3, 3), (4, 4)])
    def test_harmonics_are_eigenfunctions(self, degree: int, dim: int) -> None:
        """(x_0 + i x_1)^l is harmonic: the Laplace-Beltrami operator multiplies by -l (l + d - 2)."""
        with precision(np.float64):
            x = jnp.asarray(_unit((dim,)))

            def harmonic(x):
                return ((x[0] + 1j * x[1]) ** degree).real

            found = SphereLangevin(on_fields=False)(harmonic, x, jnp.zeros(dim))
            assert np.allclose(found, -degree * (degree + dim - 2) * harmonic(x), rtol=1e-10)

    def test_fields_and_potentials_agree(self) -> None:
        import jax

        with precision(np.float64):
            x, score = jnp.asarray(_unit((3,))), jnp.array([0.3, -1.0, 2.0])

            def v(x):
                return jnp.sin(x[0] + 2 * x[1] * x[2])

            second = SphereLangevin(on_fields=False)(v, x, score)
            assert np.allclose(SphereLangevin()(jax.grad(v), x, score), second, rtol=1e-12)
            extended = SphereLangevin()(
                jax.grad(v), x, score + 5.0 * x
            )  # a radial part is no score
            assert np.allclose(extended, second, rtol=1e-12)


class TestSphericalPolynomial:
    @pytest.mark.parametrize("degree", [1, 2, 3, 4])
    def test_spans_all_polynomials_once(self, degree: int) -> None:
        with precision(np.float64):
            x = jnp.asarray(_unit((100, 3)))
            own = SphericalPolynomial(degree).feature_matrix(None, x, 0 * x)
            family = sx.Polynomial(degree, operator=SPHERE.potential_operator)
            both = np.hstack([own, family.feature_matrix(None, x, 0 * x)])
        harmonics = (degree + 1) ** 2 - 1
        assert own.shape[1] == SphericalPolynomial(degree).size(None, 3) == harmonics
        assert np.linalg.matrix_rank(np.asarray(own)) == harmonics
        assert np.linalg.matrix_rank(both) == harmonics

    def test_refusals(self) -> None:
        with pytest.raises(ValueError, match="1 or more"):
            SphericalPolynomial(0)
        with pytest.raises(ValueError, match="family of potentials"):
            SphericalPolynomial(2, SphereLangevin())


class TestAudit:
    def test_wrong_concentrations_and_signs_are_refused(self) -> None:
        mean = np.array([0.0, 0.6, 0.8])
        x = stats.vonmises_fisher(mean, 3.0).rvs(1000, random_state=np.random.default_rng(0))
        x = x.reshape(4, 250, 3)
        score = 3.0 * mean + 0 * x
        assert sx.audit(sx.Sample(x, score, space=SPHERE)).passed
        for wrong in (-score, 2 * score, score[..., ::-1]):
            assert not sx.audit(sx.Sample(x, wrong, space=SPHERE)).passed

    def test_an_axis_needs_the_quadratic_identities(self) -> None:
        """A Bingham density is even, so the linear identities hold for scores of the wrong sign."""
        x = _unit((4, 20000, 3))
        keep = [
            one[np.random.default_rng(1).uniform(size=len(one)) < np.exp(2 * one[:, 0] ** 2 - 2)]
            for one in x
        ]
        x = np.stack([one[:1000] for one in keep])
        score = np.array([4.0, 0.0, 0.0]) * x
        assert sx.audit(sx.Sample(x, score, space=SPHERE)).passed
        assert not sx.audit(sx.Sample(x, -score, space=SPHERE)).passed


def test_draws_that_are_no_directions_are_refused() -> None:
    x = np.random.default_rng(0).normal(size=(4, 10, 3))
    with pytest.raises(ValueError, match=r"not of length 1, by up to .* divide each by its length"):
        sx.Sample(x, x, space=SPHERE)
    with pytest.raises(ValueError, match="cosine and sine"):
        sx.Sample(np.ones((4, 10, 1)), np.ones((4, 10, 1)), space=SPHERE)
