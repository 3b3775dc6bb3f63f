"""Diffusion operators: known matrices and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import steinax as sx
import targets
from steinax._numerics import precision
from steinax.contrib import Diffusion, GrowingMatrix

pytestmark = pytest.mark.slow

A = np.random.default_rng(0).normal(size=(3, 3))


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _points(n: int = 12):
    return laws.points(targets.skewed(3), 3, n)


def _fields(x):
    return jnp.stack([jnp.sin(x), x**2 * x[0], jnp.cumsum(x)])


def _potentials(x):
    return jnp.stack([jnp.sum(jnp.sin(x)), jnp.prod(x), x[0] ** 2 * x[2]])


def _bent(x):
    return jnp.eye(3) + jnp.outer(jnp.sin(x), jnp.cos(x))


def _values(operator, u):
    return jax.vmap(lambda x, score: operator(u, x, score))(*_points())


class TestKnownMatrices:
    @pytest.mark.parametrize("one", [np.eye(3), np.ones(3)], ids=["matrix", "diagonal"])
    def test_the_identity_is_langevin(self, one) -> None:
        fields = _values(Diffusion(one), _fields)
        laws.assert_close(fields, _values(sx.Langevin(), _fields), 1e-12)
        potentials = _values(Diffusion(one, on_fields=False), _potentials)
        laws.assert_close(potentials, _values(sx.ScalarLangevin(), _potentials), 1e-12)

    @pytest.mark.parametrize(
        ("given", "plain"),
        [
            (sx.KernelTranslates(sx.kernels.SquaredExponential(1.3)), sx.Langevin()),
            (sx.Polynomial(3), sx.ScalarLangevin()),
        ],
        ids=["kernel", "polynomial"],
    )
    def test_families_under_the_identity(self, given, plain) -> None:
        x, score = _points()
        diffusion = Diffusion(np.ones(3), on_fields=plain.acts_on_fields)
        other = type(given)(
            *[getattr(given, name) for name in _first_field(given)], operator=diffusion
        )
        found = other.feature_matrix(other.setup(x, score), x, score)
        laws.assert_close(found, given.feature_matrix(given.setup(x, score), x, score), 1e-10)

    def test_a_constant_is_langevin_on_its_product(self) -> None:
        found = _values(Diffusion(A), _fields)
        laws.assert_close(found, _values(sx.Langevin(), lambda x: _fields(x) @ A.T), 1e-12)

    def test_potentials_are_their_gradients_as_fields(self) -> None:
        found = _values(Diffusion(_bent, on_fields=False), _potentials)
        laws.assert_close(found, _values(Diffusion(_bent), jax.jacfwd(_potentials)), 1e-12)

    def test_representer_is_the_operator_on_the_second_argument(self) -> None:
        x, score = _points(2)
        kernel, operator = sx.kernels.SquaredExponential(1.3), Diffusion(_bent)
        found = operator.representer(kernel, x[1], score[1])(x[0])
        units = operator(lambda y: kernel(x[0], y) * jnp.eye(3), x[1], score[1])
        laws.assert_close(found, units, 1e-12)
        laws.assert_close(
            operator.drift(x[1], score[1]), operator(lambda y: jnp.eye(3), x[1], score[1]), 1e-12
        )

    def test_students_t_becomes_linear(self) -> None:
        """With r = 1 / nu and two dimensions, the features of the coordinates are -x."""
        x = np.random.default_rng(1).normal(size=(20, 2)) * 3
        score = -5 * x / (3 + (x**2).sum(1, keepdims=True))
        family = sx.Polynomial(1, Diffusion(GrowingMatrix(1 / 3), on_fields=False))
        laws.assert_close(family.feature_matrix(None, x, score), -x, 1e-12)


def _first_field(family) -> tuple[str, ...]:
    return ("degree",) if isinstance(family, sx.Polynomial) else ("kernel",)


class TestRefusals:
    @pytest.mark.parametrize("matrix", [2.0, np.ones((2, 3)), np.ones((1, 2, 2))])
    def test_shape(self, matrix) -> None:
        with pytest.raises(ValueError, match=r"give \(dim, dim\), the diagonal"):
            Diffusion(matrix)

    def test_not_finite(self) -> None:
        with pytest.raises(ValueError, match="not finite: replace"):
            Diffusion([1.0, np.nan])

    def test_another_dimension(self) -> None:
        with pytest.raises(ValueError, match=r"3 dimensions: give \(3, 3\)"):
            _values(Diffusion(np.ones(2)), _fields)

    def test_fields_for_a_family_of_potentials(self) -> None:
        with pytest.raises(ValueError, match="family of potentials"):
            sx.Polynomial(2, Diffusion(np.ones(2)))

    def test_rate(self) -> None:
        with pytest.raises(ValueError, match="must be positive"):
            GrowingMatrix(-1.0)


def test_a_fit_with_a_growing_matrix_is_saved_and_loaded(tmp_path) -> None:
    """Of Student's t with five degrees of freedom, for which a constant matrix does little."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 2)) / np.sqrt(rng.chisquare(5.0, size=(500, 1)) / 5.0)
    heavy = sx.Sample(x[None], -7 * x[None] / (5 + (x[None] ** 2).sum(-1, keepdims=True)))
    growing = Diffusion(GrowingMatrix(1 / 3), on_fields=False)
    g = sx.fit("x", heavy, sx.Polynomial(1, growing))
    plain = sx.fit("x", heavy, sx.Polynomial(1))
    residual, identity = (heavy.x - one(heavy.x, heavy.score) for one in (g, plain))
    assert np.all(residual.var(0) < 0.1 * identity.var(0))
    g.save(tmp_path / "g.npz")
    loaded = sx.ControlVariate.load(tmp_path / "g.npz")
    assert np.array_equal(loaded(heavy.x, heavy.score), g(heavy.x, heavy.score))
