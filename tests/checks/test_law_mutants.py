"""Each law catches what it is there for: broken copies fail the very checks of `checks/test_laws.py`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import laws
import steinax as sx
import targets
from registry import Shape
from steinax._numerics import precision
from steinax.operators import along_direction

TARGET = targets.skewed(1)
GRID = targets.grid(TARGET, -17.0, 5.5, 4001)


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


class FlippedScore(sx.Langevin):
    """div u - u . s."""

    def __call__(self, u, x, score):
        return super().__call__(u, x, -score)


class NoDivergence(sx.Langevin):
    """u . s alone."""

    def __call__(self, u, x, score):
        return u(x) @ score


class NoLaplacian(sx.ScalarLangevin):
    """grad u . s alone."""

    def __call__(self, u, x, score):
        return along_direction(u, x, score)[1]


class ScoreOffByOnePercent(sx.ScalarLangevin):
    """lap u + 1.01 grad u . s."""

    def __call__(self, u, x, score):
        return super().__call__(u, x, 1.01 * score)


class MissingTerm(sx.kernels.SquaredExponential):
    """A Stein kernel without its term in q."""

    def _first_order(self, pairs):
        q = pairs.squared_distance
        phi2 = self.derivatives(q, 2)[2]
        return super()._first_order(pairs) + 4 * phi2 * q


class WrongDerivative(sx.kernels.SquaredExponential):
    """A third derivative with the wrong sign."""

    def derivatives(self, q, order):
        right = super().derivatives(q, order)
        return tuple(-value if n == 3 else value for n, value in enumerate(right))


class FeaturesOffByOnePercent(sx.Polynomial):
    """A closed form that is nearly right, and still of mean zero."""

    def features(self, state, x, score):
        return 1.01 * super().features(state, x, score)


class FeaturesWithAMean(sx.Polynomial):
    """A closed form with the trace of the quadratic term off by one percent."""

    def features(self, state, x, score):
        right = super().features(state, x, score)
        return right.at[x.shape[0]].add(0.01)


def _relu_potential() -> sx.Network:
    """What the library refuses to make, made behind its back."""
    network = sx.Network(8, 1, operator=sx.ScalarLangevin())
    object.__setattr__(network, "activation", jax.nn.relu)
    return network


def _smooth(operator):
    def field(x):
        return jnp.stack([jnp.sin(x + 0.3), x**2])

    def potential(x):
        return jnp.stack([jnp.sum(jnp.sin(x + 0.3)), jnp.sum(x**2)])

    u = field if operator.acts_on_fields else potential
    return lambda x, score: operator(u, x, score)


OPERATORS = [FlippedScore(), NoDivergence(), NoLaplacian(), ScoreOffByOnePercent()]
# the tolerance of the roughest row: what is caught at it is caught everywhere
LOOSEST = max(laws.ON_GRID.values())


def _caught() -> object:
    return pytest.raises(AssertionError, match=r"from zero|from 0|off by|eigenvalue|symmetric")


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: type(one).__name__)
class TestOperators:
    def test_quadrature_catches_it(self, operator) -> None:
        with _caught():
            laws.check_mean_on_grid(_smooth(operator), TARGET.score, *GRID, LOOSEST)

    def test_exact_draws_catch_it(self, operator) -> None:
        draws = targets.blocks(targets.mixture(10), 0, 200_000, 20_000)
        with _caught():
            laws.check_mean_on_draws(_smooth(operator), draws)

    def test_the_definition_of_the_stein_kernel_catches_it(self, operator) -> None:
        """A kernel's closed form is for the right operator, so the two differ."""
        x, score = laws.points(targets.skewed(2), 1, 8)
        with _caught():
            laws.check_stein_kernel(sx.kernels.SquaredExponential(1.3), operator, x, score)


class TestKernels:
    def test_missing_term_differs_from_autodiff(self) -> None:
        x, score = laws.points(targets.skewed(2), 1, 8)
        with _caught():
            laws.check_stein_kernel(MissingTerm(1.3), sx.Langevin(), x, score)

    def test_missing_term_has_a_mean(self) -> None:
        family = sx.KernelTranslates(MissingTerm(1.3))
        g = laws.functions_of(family, TARGET)
        with _caught():
            laws.check_mean_on_grid(g, TARGET.score, *GRID, LOOSEST)

    def test_wrong_derivative(self) -> None:
        with _caught():
            laws.check_radial_derivatives(WrongDerivative(1.3), 4, jnp.array([0.5, 2.0]))

    def test_gram_that_is_not_positive(self) -> None:
        x, score = laws.points(targets.skewed(2), 2, 30)
        gram = laws.pairs(MissingTerm(1.3).stein, sx.Langevin(), x, score)
        with _caught():
            laws.check_positive(gram - 0.1 * jnp.eye(len(x)))
        with _caught():
            laws.check_positive(gram.at[0, 1].add(0.01))


class TestFamilies:
    @pytest.mark.parametrize("mutant", [FeaturesOffByOnePercent(2), FeaturesWithAMean(2)])
    def test_features_differ_from_the_operator_on_the_basis(self, mutant) -> None:
        x, score = laws.points(targets.skewed(2), 3, 8)
        with _caught():
            laws.check_features(mutant, None, x, score)

    def test_features_with_a_mean(self) -> None:
        g = laws.functions_of(FeaturesWithAMean(2), TARGET)
        with _caught():
            laws.check_mean_on_grid(g, TARGET.score, *GRID, laws.ON_GRID[Shape.KINKED])

    def test_relu_potential_has_a_mean(self) -> None:
        """Not even the tolerance for functions with jumps lets it pass."""
        g = laws.functions_of(_relu_potential(), TARGET)
        with _caught():
            laws.check_mean_on_grid(g, TARGET.score, *GRID, laws.ON_GRID[Shape.BROKEN])

    def test_relu_potential_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"Use a smooth activation .* or a vector field"):
            sx.Network(8, 1, activation=jax.nn.relu, operator=sx.ScalarLangevin())

    def test_network_with_a_wrong_bias(self) -> None:
        network = sx.Network(8, 2, operator=sx.ScalarLangevin())
        x, score = laws.points(targets.skewed(2), 4, 8)
        params = laws.random_params(network, None, x)

        class Shifted(sx.Network):
            def evaluate(self, state, params, x, score):
                moved = eqx.tree_at(lambda p: p[0][0][1], params, replace_fn=lambda b: 1.01 * b)
                return super().evaluate(state, moved, x, score)

        with _caught():
            laws.check_network(Shifted(8, 2, operator=sx.ScalarLangevin()), params, x, score)
