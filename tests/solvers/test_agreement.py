"""Different ways to the same answer agree: solvers, forms, refits, and an independent solve."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from full import only_full
from steinax._numerics import precision
from steinax.solvers import Problem, evaluate, prepare

pytestmark = pytest.mark.slow

AGREE = 1e-8
KEY = jax.random.key(0)
KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(1.5))
POLYNOMIAL_AND_KERNEL = sx.Polynomial(2) + KERNEL


@pytest.fixture(autouse=True)
def double_precision():
    with precision(np.float64):
        yield


def _problem(family, penalty, objective=None, dim: int = 3, length: int = 30) -> Problem:
    """A banana with three integrands, in standardised coordinates."""
    sample = targets.banana(dim).sample(0, chains=4, length=length)
    f = {"a": lambda x: x[1], "b": lambda x: jnp.sin(x[0]), "c": lambda x: jnp.exp(x[-1] / 2) + 9}
    wanted = sx.data.integrands(f, sample)
    return prepare(wanted, sample, family, penalty, objective)[0]


def _answers(solver: sx.solvers.AbstractSolver, problem: Problem) -> np.ndarray:
    """The intercepts, and g on the draws, in one array: (1 + n, k)."""
    solution = solver.solve(problem, KEY)
    values = evaluate(problem.family, solution.state, solution.params, problem.x, problem.score)
    return np.vstack([solution.intercept, values])


NATIVE, RIDGE, FREE = sx.NativeNorm(1e-4), sx.Ridge(1e-4), sx.NoPenalty()
CASES = {
    "linear, free": (sx.Polynomial(1), FREE),
    "quadratic, free": (sx.Polynomial(2), FREE),
    "quadratic, ridge": (sx.Polynomial(2), RIDGE),
    "cubic, native": (sx.Polynomial(3), NATIVE),
    "kernel, native": (KERNEL, NATIVE),
    "kernel, ridge": (KERNEL, RIDGE),
    "second-order kernel": (
        sx.KernelTranslates(sx.kernels.InverseMultiquadric(1.5), operator=sx.ScalarLangevin()),
        NATIVE,
    ),
    "landmarks, native": (sx.KernelTranslates(sx.kernels.Matern52(2.0), sx.Landmarks(12)), NATIVE),
    "landmarks, ridge": (sx.KernelTranslates(sx.kernels.Matern32(2.0), sx.Landmarks(12)), RIDGE),
    "random features": (sx.RandomFeatures(40, 1.5), RIDGE),
    "polynomial + kernel, native": (POLYNOMIAL_AND_KERNEL, NATIVE),
    "polynomial free + kernel": (POLYNOMIAL_AND_KERNEL, (FREE, NATIVE)),
    "three terms": (
        sx.Polynomial(1) + sx.RandomFeatures(20, 2.0) + KERNEL,
        (FREE, RIDGE, NATIVE),
    ),
}
OBJECTIVES = [sx.LeastSquares(), sx.Variance()]


# A basis that is itself made of draws (landmarks, or translates with a ridge on their coefficients)
# is another one for each training set; the others are the same for all.
REFITTED = [name for name in CASES if "landmarks" not in name and name != "kernel, ridge"]


QUICK = ("quadratic, free", "quadratic, ridge", "kernel, native", "polynomial free + kernel")
SLOW = ("cubic, native", "second-order kernel", "landmarks, native", "three terms")


def _cases(names=tuple(CASES)):
    """A test per case; four of them cover every path, four are slow, the others are long runs."""
    slow, long = (pytest.mark.slow,), (pytest.mark.slow, only_full)
    marks = {name: () if name in QUICK else slow if name in SLOW else long for name in names}
    return pytest.mark.parametrize(
        "name", [pytest.param(name, id=name, marks=marks[name]) for name in names]
    )


class TestSolvers:
    @_cases()
    def test_primal_and_dual(self, name: str) -> None:
        problem = _problem(*CASES[name])
        primal, dual = (_answers(sx.Exact(dual=form), problem) for form in (False, True))
        np.testing.assert_allclose(primal, dual, rtol=0, atol=AGREE)

    @_cases()
    def test_conjugate_gradients(self, name: str) -> None:
        problem = _problem(*CASES[name])
        found = _answers(sx.ConjugateGradient(tolerance=1e-13), problem)
        np.testing.assert_allclose(found, _answers(sx.Exact(), problem), rtol=0, atol=AGREE)

    @_cases(["quadratic, ridge", "polynomial free + kernel"])
    @pytest.mark.parametrize("solver", [sx.Exact(dual=True), sx.ConjugateGradient(1e-13)])
    def test_variance_objective(self, name: str, solver: sx.solvers.AbstractSolver) -> None:
        problem = _problem(*CASES[name], objective=sx.Variance())
        primal = _answers(sx.Exact(dual=False), problem)
        np.testing.assert_allclose(_answers(solver, problem), primal, rtol=0, atol=AGREE)

    def test_auto_is_one_of_them(self) -> None:
        problem = _problem(*CASES["quadratic, free"])
        np.testing.assert_array_equal(_answers(sx.Auto(), problem), _answers(sx.Exact(), problem))


class TestCrossFitting:
    @_cases(REFITTED)
    @pytest.mark.parametrize("dual", [False, True])
    def test_equals_refitting(self, name: str, dual: bool) -> None:
        """All folds from one factorisation are what a refit for each gives, at equal folds."""
        problem, solver = _problem(*CASES[name]), sx.Exact(dual=dual)
        folds = sx.CrossFit(4).boundaries(chains=4, length=30)
        once = solver.crossfit(problem, folds, KEY).residual
        again = sx.solvers.AbstractSolver.crossfit(solver, problem, folds, KEY).residual
        np.testing.assert_allclose(once, again, rtol=0, atol=AGREE)

    def test_equals_refitting_under_the_variance_objective(self) -> None:
        problem = _problem(POLYNOMIAL_AND_KERNEL, (FREE, NATIVE), sx.Variance())
        folds = sx.CrossFit(4).boundaries(chains=4, length=30)
        once = sx.Exact().crossfit(problem, folds, KEY).residual
        again = sx.solvers.AbstractSolver.crossfit(sx.Exact(), problem, folds, KEY).residual
        np.testing.assert_allclose(once, again, rtol=0, atol=AGREE)

    def test_mean_square_is_refitted(self) -> None:
        problem = _problem(sx.Polynomial(2), sx.MeanSquare(0.1))
        folds = sx.CrossFit(4).boundaries(chains=4, length=30)
        once = sx.Exact().crossfit(problem, folds, KEY).residual
        again = sx.solvers.AbstractSolver.crossfit(sx.Exact(), problem, folds, KEY).residual
        np.testing.assert_allclose(once, again, rtol=0, atol=AGREE)


class TestObjectives:
    def test_variance_is_the_paper_s_sum_over_pairs(self) -> None:
        rest = np.random.default_rng(0).normal(size=(17, 2))
        m = len(rest)
        pairs = sum((rest[i] - rest[j]) ** 2 for i in range(m) for j in range(i))
        found = sx.Variance()(jnp.asarray(rest), jnp.zeros(2))
        np.testing.assert_allclose(found, 2 / (m * (m - 1)) * pairs, rtol=1e-13)

    @pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
    @pytest.mark.parametrize(
        ("family", "penalty"),
        [
            (sx.Polynomial(2), NATIVE),
            (sx.Polynomial(2), sx.MeanSquare(0.1)),
            (KERNEL, NATIVE),
            (KERNEL, RIDGE),
            (POLYNOMIAL_AND_KERNEL, (RIDGE, NATIVE)),
        ],
        ids=["native", "mean square", "kernel", "kernel ridge", "sum"],
    )
    def test_the_exact_solution_is_a_minimum(self, family, penalty, objective) -> None:
        """The loss that stochastic solvers see rises in every direction from the exact minimiser.

        Its gradient vanishes there, compared with the gradient at zero.
        """
        problem = _problem(family, penalty, objective)
        solution = sx.Exact().solve(problem, KEY)
        everything = np.arange(len(problem.x))
        params, several = solution.params, len(family.terms) > 1
        if several:
            sizes = [t.size(s, 3) for t, s in zip(family.terms, solution.state, strict=True)]
            params = tuple(jnp.split(params, np.cumsum(sizes)[:-1]))

        def loss(both):
            return problem.loss(solution.state, both[0], both[1], everything)

        here = (params, solution.intercept)
        nowhere = jax.tree.map(jnp.zeros_like, here)
        gradient = jax.jit(jax.grad(loss))
        size = _largest(gradient(nowhere))
        assert _largest(gradient(here)) < 1e-9 * size
        rng = np.random.default_rng(1)
        for _ in range(5):
            near = jax.tree.map(lambda a: a + 1e-2 * rng.normal(size=a.shape), here)
            assert loss(near) > loss(here)


def _largest(tree) -> float:
    return max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(tree))


class TestControlFunctional:
    """With the kernel k_0 + sigma^2, against the paper's closed form in k_0 + sigma^2 itself."""

    @pytest.mark.parametrize("sigma", [0.3, 2.0])
    def test_equals_the_closed_form(self, sigma: float) -> None:
        problem = _problem(KERNEL, NATIVE)
        solution = sx.Exact(sigma=sigma).solve(problem)
        gram = KERNEL.cross_gram(solution.state, problem.x, problem.score, problem.x, problem.score)
        n = len(problem.x)
        whole = gram + n * NATIVE.strength * np.eye(n) + sigma**2
        weights = np.linalg.solve(whole, problem.f)
        np.testing.assert_allclose(solution.intercept, sigma**2 * weights.sum(axis=0), rtol=AGREE)
        g = evaluate(KERNEL, solution.state, solution.params, problem.x, problem.score)
        np.testing.assert_allclose(g, gram @ weights, rtol=1e-6, atol=AGREE)

    @pytest.mark.parametrize(
        ("family", "penalty", "dual"),
        [(KERNEL, NATIVE, True), (KERNEL, RIDGE, True), (sx.Polynomial(2), RIDGE, False)],
    )
    def test_folds_equal_refitting(self, family, penalty, dual: bool) -> None:
        problem, solver = _problem(family, penalty), sx.Exact(dual, sigma=0.5)
        folds = ((0, 40), (40, 80), (80, 120))
        held = solver.crossfit(problem, folds)
        expected = sx.solvers.AbstractSolver.crossfit(solver, problem, folds)
        np.testing.assert_allclose(held.residual, expected.residual, rtol=1e-6, atol=AGREE)

    def test_infinity_is_the_limit(self) -> None:
        problem = _problem(KERNEL, NATIVE)
        limit, far = _answers(sx.Exact(), problem), _answers(sx.Exact(sigma=1e5), problem)
        np.testing.assert_allclose(far, limit, rtol=1e-6, atol=1e-6)

    def test_refuses_what_has_no_meaning(self) -> None:
        with pytest.raises(ValueError, match="positive"):
            sx.Exact(sigma=0.0)
        with pytest.raises(ValueError, match="0 terms have a penalty"):
            sx.Exact(sigma=1.0).solve(_problem(sx.Polynomial(2), FREE))
