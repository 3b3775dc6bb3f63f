"""Each check catches what it is there for: broken copies fail it, by name."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax import checks
from steinax.solvers import HeldOut, Solution

COUNT = iter(range(10**9))
RNG = np.random.default_rng(0)


class Biased(sx.Polynomial):
    def features(self, state, x, score):
        return super().features(state, x, score) + 1e-3


class WrongScale(sx.Polynomial):
    def features(self, state, x, score):
        return 1.01 * super().features(state, x, score)


class WrongAdjoint(sx.Polynomial):
    def adjoint(self, state, x, score, values):
        return -super().adjoint(state, x, score, values)


class WrongSize(sx.Polynomial):
    def size(self, state, dim):
        return super().size(state, dim) + 1


class StartsElsewhere(sx.Polynomial):
    def init(self, state, x, k, key):
        return super().init(state, x, k, key) + 0.1


class ForgetsToRescale(sx.Polynomial):
    def rescale(self, params, factor):
        return jnp.asarray(params)


class Random(sx.RandomFeatures):
    """Frequencies from NumPy's global generator."""

    def setup(self, x, score):
        made = super().setup(x, score)
        return jax.tree.map(lambda leaf: leaf * (1 + np.random.random()), made)


class RandomScale(sx.kernels.AbstractHeuristic):
    """Another length-scale on every call."""

    def __call__(self, x):
        return jnp.asarray(1 + RNG.random())


class Writes(sx.Polynomial):
    def setup(self, x, score):
        if isinstance(x, np.ndarray) and x.flags.writeable:
            x -= x.mean(axis=0)


class AsksForMemory(sx.Polynomial):
    def setup(self, x, score):
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError("read-only")


class SetsPrecision(sx.Polynomial):
    def setup(self, x, score):
        jax.config.update("jax_default_matmul_precision", "float32")


class SeedsNumPy(sx.Polynomial):
    def setup(self, x, score):
        np.random.seed(1)


class FiltersWarnings(sx.Polynomial):
    def setup(self, x, score):
        warnings.simplefilter("ignore")


class NeedsDouble(sx.Polynomial):
    def evaluate(self, state, params, x, score):
        value = super().evaluate(state, params, x, score)
        return value if x.dtype == jnp.float64 else value * jnp.nan


class NaNAtZero(sx.families.AbstractLinearFamily):
    """A norm, whose gradient at zero is NaN."""

    operator: sx.operators.AbstractOperator = eqx.field(default_factory=sx.ScalarLangevin)

    def setup(self, x, score):
        return None

    def basis(self, state, x):
        return jnp.sqrt(jnp.sum(x**2))[None]


class AsksForValues(sx.Polynomial):
    def evaluate(self, state, params, x, score):
        return super().evaluate(state, params, x, score) * (1.0 if x[0] > 0 else 2.0)


class KnowsOthers(sx.Polynomial):
    """Features that depend on which draws are evaluated together."""

    def apply(self, state, coef, x, score):
        return super().apply(state, coef, x - jnp.mean(x, axis=0), score)


class KnowsPlace(sx.families.AbstractLinearFamily):
    """One function, along the first of the draws."""

    operator: sx.operators.AbstractOperator = eqx.field(default_factory=sx.ScalarLangevin)

    def setup(self, x, score):
        return jnp.asarray(x)[0]

    def basis(self, state, x):
        return (x @ state)[None]


class Unsaved(sx.Polynomial):
    function: object = eqx.field(static=True, default=lambda x: x)


FAMILIES = {
    "mean is zero in one dimension": Biased(1),
    "mean is zero in two dimensions": Biased(2),
    "starts as plain monte carlo": StartsElsewhere(1),
    "rescales by integrand": ForgetsToRescale(1),
    "gives the same bits twice": Random(4, 1.0),
    "estimates are the same bits twice": sx.KernelTranslates(
        sx.kernels.SquaredExponential(RandomScale())
    ),
    "leaves its input alone": Writes(1),
    "takes any memory layout": AsksForMemory(1),
    "works in float32": NeedsDouble(1),
    "is finite everywhere": NaNAtZero(),
    "maps and compiles": AsksForValues(1),
    "points do not know each other": KnowsOthers(2),
    "order of chains changes nothing": KnowsPlace(),
    "survives saving": Unsaved(1),
}


def _fails(thing, name: str, message: str = "", **options) -> None:
    check = dict(checks.checks_for(thing, **options))[name]
    with pytest.raises(checks.CheckFailed, match=f"(?s)fails the check '{name}'.*{message}"):
        check()


@pytest.mark.parametrize("name", FAMILIES)
def test_family(name: str) -> None:
    _fails(FAMILIES[name], name)


@pytest.mark.parametrize(
    ("mutant", "method"),
    [(WrongScale(2), "features"), (WrongAdjoint(2), "adjoint"), (WrongSize(2), "size")],
)
def test_override(mutant: sx.families.AbstractFamily, method: str) -> None:
    _fails(mutant, "overrides agree with the defaults", method)


@pytest.mark.parametrize(
    ("mutant", "setting"),
    [
        (SetsPrecision(1), "jax_default_matmul_precision"),
        (SeedsNumPy(1), "numpy.random"),
        (FiltersWarnings(1), "warnings.filters"),
    ],
)
def test_global_setting(mutant: sx.families.AbstractFamily, setting: str) -> None:
    before, state = jax.config.jax_default_matmul_precision, np.random.get_state()
    try:
        with warnings.catch_warnings():
            _fails(mutant, "changes no global setting", f"the global.*{setting}")
    finally:
        jax.config.update("jax_default_matmul_precision", before)
        np.random.set_state(state)


class WrongDerivative(sx.kernels.SquaredExponential):
    def derivatives(self, q, order):
        right = super().derivatives(q, order)
        return tuple(-value if n == 3 else value for n, value in enumerate(right))


class WrongClosedForm(sx.kernels.SquaredExponential):
    def closed_form(self, operator, x, score_x, y, score_y):
        right = super().closed_form(operator, x, score_x, y, score_y)
        return None if right is None else right + 1e-3


class Asymmetric(sx.kernels.AbstractKernel):
    def __call__(self, x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2)) * (1 + 0.1 * x[0])


class Cusp(sx.kernels.AbstractKernel):
    """NaN where x = y, by differentiation of a norm."""

    def __call__(self, x, y):
        return jnp.exp(-jnp.sqrt(jnp.sum((x - y) ** 2)))


class Noisy(sx.kernels.SquaredExponential):
    def __call__(self, x, y):
        return super().__call__(x, y) * (1.0 + next(COUNT) % 5)


KERNELS = {
    "is symmetric and positive": Asymmetric(),
    "stein kernel is its definition": WrongClosedForm(1.3),
    "stein kernel has mean zero": WrongClosedForm(1.3),
    "derivatives follow each other": WrongDerivative(1.3),
    "is finite everywhere": Cusp(),
    "is deterministic": Noisy(1.3),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str) -> None:
    _fails(KERNELS[name], name)


class FlippedScore(sx.Langevin):
    def __call__(self, u, x, score):
        return super().__call__(u, x, -score)


class Squared(sx.Langevin):
    def __call__(self, u, x, score):
        return super().__call__(u, x, score) ** 2


class WrongRepresenter(sx.Langevin):
    def representer(self, kernel, y, score):
        return super().representer(kernel, y, -score)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (FlippedScore(), "mean is zero"),
        (Squared(), "is linear"),
        (WrongRepresenter(), "its stein kernel is positive"),
    ],
)
def test_operator(mutant: sx.operators.AbstractOperator, name: str) -> None:
    _fails(mutant, name)


class Offset(sx.LeastSquares):
    def __call__(self, rest, intercept):
        return super().__call__(rest, intercept) + 1


class FirstDraw(sx.LeastSquares):
    def __call__(self, rest, intercept):
        return jnp.asarray(super().__call__(rest, intercept) * (rest[0] - intercept) ** 2)


class Costly(sx.Ridge):
    def __call__(self, family, state, params, values):
        return super().__call__(family, state, params, values) + 1


class Absolute(sx.Ridge):
    is_quadratic = True

    def __call__(self, family, state, params, values):
        return jnp.sqrt(super().__call__(family, state, params, values))


class OtherGram(sx.Ridge):
    def gram(self, family, state, dim):
        return 2 * jnp.eye(family.size(state, dim))


class Huber(sx.LeastSquares):
    is_quadratic = True

    def __call__(self, rest, intercept):
        size = jnp.abs(rest - intercept)
        return jnp.mean(jnp.where(size < 1, size**2, 2 * size - 1), axis=0)


class Negative(sx.Ridge):
    strength: float = -1.0


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (Offset(), "is zero for a perfect fit"),
        (FirstDraw(), "treats draws and integrands alike"),
        (Costly(0.1), "is zero at zero"),
        (Huber(), "is the quadratic form it says"),
        (Absolute(0.1), "is the form it says"),
        (OtherGram(0.1), "is the form it says"),
        (Negative(-1.0), "has a strength"),
    ],
)
def test_objective_and_penalty(mutant: object, name: str) -> None:
    _fails(mutant, name)


class Sloppy(sx.Exact):
    def solve(self, problem, key):
        found = super().solve(problem, key)
        return Solution(found.family, found.state, 0.99 * found.params, found.intercept, found.note)


class Forgetful(sx.Exact):
    """Random numbers from its own generator."""

    def solve(self, problem, key):
        found = super().solve(problem, key)
        moved = found.params * (1 + 1e-12 * RNG.random())
        return Solution(found.family, found.state, moved, found.intercept, found.note)


class Leaky(sx.Exact):
    """Cross-fitting that fits to all draws."""

    def crossfit(self, problem, folds, key):
        found = self.solve(problem, key)
        return HeldOut(problem.f - found.evaluate(problem.x, problem.score))


class OtherFolds(sx.Exact):
    """Cross-fitting that fits to half of the other folds."""

    def crossfit(self, problem, folds, key):
        return HeldOut(0.999 * super().crossfit(problem, folds, key).residual)


class Centres(sx.Exact):
    def solve(self, problem, key):
        if isinstance(problem.f, np.ndarray):
            problem.f[:] = 0.0
        return super().solve(problem, key)


class Mixes(sx.Exact):
    def solve(self, problem, key):
        found = super().solve(problem, key)
        mean = found.intercept + 1e-3 * np.sum(found.intercept)
        return Solution(found.family, found.state, found.params, mean, found.note)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (Sloppy(), "finds the least squares fit"),
        (Forgetful(), "gives the same bits twice"),
        (Centres(), "leaves the problem alone"),
        (Mixes(), "integrands do not know each other"),
        (Leaky(), "crossfit holds out each fold"),
        (OtherFolds(), "crossfit is refitting"),
    ],
)
def test_solver(mutant: sx.solvers.AbstractSolver, name: str) -> None:
    _fails(mutant, name)


class Silent(sx.InSample):
    """In-sample, with an error bar."""

    def control(self, problem, chains, solver, key):
        made = super().control(problem, chains, solver, key)
        return HeldOut(made.residual, made.note)


class Flat(sx.CrossFit):
    """One draw fewer of the last chain."""

    def control(self, problem, chains, solver, key):
        made = super().control(problem, chains, solver, key)
        return HeldOut(made.residual[:-1], made.note)


class Jittery(sx.CrossFit):
    def control(self, problem, chains, solver, key):
        made = super().control(problem, chains, solver, key)
        return HeldOut(made.residual * (1 + 1e-12 * RNG.random()), made.note)


class FirstChain(sx.CrossFit):
    """The first chain's average alone."""

    def control(self, problem, chains, solver, key):
        made = super().control(problem, chains, solver, key)
        series = made.residual.reshape(chains, -1, 1).copy()
        series[1:] = series[:1]
        return HeldOut(series.reshape(-1, 1), made.note)


class Bare(sx.CrossFit):
    def boundaries(self, chains, length):
        return super().boundaries(chains, length) if length > 4 else {}[length]


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (Silent(), "error bars are for held out draws"),
        (Flat(), "gives residuals of whole chains"),
        (Jittery(), "gives the same bits twice"),
        (FirstChain(), "chains may come in any order"),
        (Bare(), "few draws are refused or honest"),
    ],
)
def test_split(mutant: sx.estimation.AbstractSplit, name: str) -> None:
    _fails(mutant, name)
