"""Diffusion operators: known matrices, refusals, and a matrix that is learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import steinax as sx
import targets
from steinax._precision import precision
from steinax.families import Learned
from steinax.operators import GrowingMatrix, NetworkMatrix, TriangularMatrix

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
        fields = _values(sx.Diffusion(one), _fields)
        laws.assert_close(fields, _values(sx.Langevin(), _fields), 1e-12)
        potentials = _values(sx.Diffusion(one, on_fields=False), _potentials)
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
        diffusion = sx.Diffusion(np.ones(3), on_fields=plain.acts_on_fields)
        other = type(given)(
            *[getattr(given, name) for name in _first_field(given)], operator=diffusion
        )
        found = other.feature_matrix(other.setup(x, score), x, score)
        laws.assert_close(found, given.feature_matrix(given.setup(x, score), x, score), 1e-10)

    def test_a_constant_is_langevin_on_its_product(self) -> None:
        found = _values(sx.Diffusion(A), _fields)
        laws.assert_close(found, _values(sx.Langevin(), lambda x: _fields(x) @ A.T), 1e-12)

    def test_potentials_are_their_gradients_as_fields(self) -> None:
        found = _values(sx.Diffusion(_bent, on_fields=False), _potentials)
        laws.assert_close(found, _values(sx.Diffusion(_bent), jax.jacfwd(_potentials)), 1e-12)

    def test_representer_is_the_operator_on_the_second_argument(self) -> None:
        x, score = _points(2)
        kernel, operator = sx.kernels.SquaredExponential(1.3), sx.Diffusion(_bent)
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
        family = sx.Polynomial(1, sx.Diffusion(GrowingMatrix(1 / 3), on_fields=False))
        laws.assert_close(family.feature_matrix(None, x, score), -x, 1e-12)


def _first_field(family) -> tuple[str, ...]:
    return ("degree",) if isinstance(family, sx.Polynomial) else ("kernel",)


@pytest.mark.parametrize("on_fields", [True, False])
@pytest.mark.parametrize("make", [TriangularMatrix, NetworkMatrix])
def test_mean_is_zero_for_every_parameter(make, on_fields: bool) -> None:
    leaves, tree = jax.tree.flatten(make(2))
    rng = np.random.default_rng(2)
    moved = jax.tree.unflatten(tree, [leaf + rng.normal(size=leaf.shape) / 2 for leaf in leaves])
    target = targets.mixture(2)
    nodes, weights = targets.grid(target, -9.5, 9.5, 201)
    g = laws.operator_on_functions(sx.Diffusion(moved, on_fields))
    laws.check_mean_on_grid(g, target.score, nodes, weights, 1e-10)


class TestRefusals:
    @pytest.mark.parametrize("matrix", [2.0, np.ones((2, 3)), np.ones((1, 2, 2))])
    def test_shape(self, matrix) -> None:
        with pytest.raises(ValueError, match=r"give \(dim, dim\), the diagonal"):
            sx.Diffusion(matrix)

    def test_not_finite(self) -> None:
        with pytest.raises(ValueError, match="not finite: mend"):
            sx.Diffusion([1.0, np.nan])

    def test_another_dimension(self) -> None:
        with pytest.raises(ValueError, match=r"3 dimensions: give \(3, 3\)"):
            _values(sx.Diffusion(np.ones(2)), _fields)

    def test_fields_for_a_family_of_potentials(self) -> None:
        with pytest.raises(ValueError, match="family of potentials"):
            sx.Polynomial(2, sx.Diffusion(np.ones(2)))

    def test_rate(self) -> None:
        with pytest.raises(ValueError, match="must be positive"):
            GrowingMatrix(-1.0)

    def test_nothing_to_learn(self) -> None:
        with pytest.raises(ValueError, match=r"no arrays to train\. Give it one"):
            Learned(sx.Network(8, 1))

    def test_a_sum_has_no_operator(self) -> None:
        with pytest.raises(TypeError, match="wrap its terms one by one"):
            Learned(sx.Polynomial(1) + sx.Polynomial(2))


@pytest.fixture(scope="module")
def heavy() -> sx.Sample:
    """Draws of Student's t with five degrees of freedom."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 2)) / np.sqrt(rng.chisquare(5.0, size=(500, 1)) / 5.0)
    score = -7 * x / (5 + (x**2).sum(1, keepdims=True))
    return sx.Sample(x[None], score[None])


@pytest.fixture(scope="module")
def fitted(heavy: sx.Sample) -> sx.ControlVariate:
    growing = sx.Diffusion(GrowingMatrix(0.02), on_fields=False)
    solver = sx.Stochastic(epochs=30)
    return sx.fit("x", heavy, Learned(sx.Polynomial(1, growing)), solver=solver)


def test_the_rate_of_students_t_is_learned(heavy, fitted) -> None:
    """It starts at 0.02; in units of the draws' standard deviations it is near (5/3) / 5."""
    rate = np.exp(fitted.params[0].matrix.log_rate)
    assert 0.2 < rate < 0.55
    rest = heavy.x - fitted(heavy.x, heavy.score)
    plain = sx.fit("x", heavy, sx.Polynomial(1))
    identity = heavy.x - plain(heavy.x, heavy.score)
    assert np.all(rest.var(0) < 0.1 * identity.var(0))


def test_a_learned_operator_is_saved_and_loaded(heavy, fitted, tmp_path) -> None:
    fitted.save(tmp_path / "g.npz")
    loaded = sx.ControlVariate.load(tmp_path / "g.npz")
    draws = heavy.x[:5], heavy.score[:5]
    assert np.array_equal(loaded(*draws), fitted(*draws))
