"""Laws of estimates with a family, and laws of splits into fitted and averaged draws."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ..data import Sample
from ..estimation import AbstractSplit, Estimate, estimate
from ..families import AbstractFamily, AbstractLinearFamily, Polynomial
from ..fitting import ControlVariate, fit
from ..objectives import LeastSquares, NoPenalty, Ridge
from ..solvers import AbstractSolver, Exact, Problem, Stochastic
from ._check import Law, expect, law, layouts, nothing_changes, same_bits
from ._estimator import check_honest, outcome
from ._family import FamilyCase, of_linear_family
from ._laws import skewed

CHAINS, LENGTH = 4, 24
CLOSE = 1e-9  # largest difference, in plain standard errors


def functions() -> dict:
    """Return two integrands: a polynomial and one that is not."""
    return {"square": lambda x: x[0] ** 2 + x[1], "wave": lambda x: jnp.sin(x[0])}


def skewed_sample() -> Sample:
    """Return a small sample of a skewed target."""
    return skewed(2).sample(3, CHAINS, LENGTH)


@dataclass(frozen=True)
class Use:
    """A family and the solver that fits it, as a function that computes an estimate."""

    family: AbstractFamily
    solver: AbstractSolver | None = None

    def __call__(self, sample: Sample, f: object = None) -> Estimate:
        """Estimate the expectations of f, or of `functions()` by default."""
        wanted = functions() if f is None else f
        return estimate(wanted, sample, self.family, solver=self.solver)  # type: ignore[arg-type]


def use(case: FamilyCase) -> Use:
    """Return the estimator of a case; a nonlinear family is trained for two epochs only."""
    return Use(case.family, None if case.linear else Stochastic(epochs=2))


def _knows_no_order(case: FamilyCase) -> bool:
    """Return whether the order of chains cannot matter, unlike for landmarks picked at regular steps."""
    return case.linear and all(
        isinstance(term, AbstractLinearFamily)
        and (not term.centres_on_draws or term.is_whole_space)
        for term in case.family.terms
    )


def close(actual: Estimate, expected: Estimate, factor: float = 1.0, shift: float = 0.0) -> None:
    """Check that an estimate is `factor` times the expected one plus `shift`, in plain standard errors."""
    unit = np.abs(factor) * expected.plain_mcse
    for name in ("value", "plain_value"):
        error = np.abs(getattr(actual, name) - factor * getattr(expected, name) - shift) / unit
        expect(
            np.max(error) <= CLOSE, f"`{name}` is off by {np.max(error):.1e} plain standard errors"
        )
    for name in ("mcse", "plain_mcse"):
        error = np.abs(getattr(actual, name) - np.abs(factor) * getattr(expected, name)) / unit
        expect(
            np.max(error) <= 1e-6, f"`{name}` is off by {np.max(error):.1e} plain standard errors"
        )


@law("look at the values of `evaluate` on these draws: they must be finite and of mean zero.")
def estimates_are_honest(case: FamilyCase) -> None:
    """Estimates are finite with an error, or NaN with a reason; the plain value is the average."""
    sample = skewed_sample()
    result = use(case)(sample)
    check_honest(result)
    x = sample.draws
    plain = np.array([np.mean(x[..., 0] ** 2 + x[..., 1]), np.mean(np.sin(x[..., 0]))])
    expect(
        np.allclose(result.plain_value, plain, rtol=1e-12), "`plain_value` is not the plain average"
    )


@law("draw random numbers from the given key, and keep nothing between calls.")
def estimates_are_the_same_bits_twice(case: FamilyCase) -> None:
    """Two estimates from the same input are the same bits, and no global setting changes."""
    with nothing_changes():
        first, second = use(case)(skewed_sample()), use(case)(skewed_sample())
    expect(same_bits(first, second), "the same sample gave two estimates")


@law(
    "use draws as a set: no feature may depend on the position of a draw in its chain.",
    _knows_no_order,
)
def order_of_chains_changes_nothing(case: FamilyCase) -> None:
    """Chains in another order give the same estimate, up to rounding."""
    sample, order = skewed_sample(), [2, 0, 3, 1]
    reordered = Sample(sample.draws[order], sample.scores[order])
    close(use(case)(reordered), use(case)(sample))


@law(
    "fit f by least squares with an intercept: nothing may depend on its unit or its zero.",
    of_linear_family,
)
def estimates_follow_f(case: FamilyCase) -> None:
    """E[a f + b] = a E[f] + b, and the error is multiplied by |a|."""
    names = ("square", "wave")
    moved = {name: _moved(functions()[name], -4.0, 3.0) for name in names}
    close(use(case)(skewed_sample(), moved), use(case)(skewed_sample()), -4.0, 3.0)


def _moved(f, factor: float, shift: float):
    return lambda x: factor * f(x) + shift


@law(
    "use the coordinates that `setup` is given: they are standardised already. If all columns share a unit, "
    "let `has_one_unit` return True.",
    of_linear_family,
)
def units_of_draws_change_nothing(case: FamilyCase) -> None:
    """Multiplying draws and dividing scores by powers of two gives the same estimate.

    Columns that are in one unit are multiplied by the same power.
    """
    one_unit = any(getattr(term, "has_one_unit", False) for term in case.family.terms)
    sample, unit = skewed_sample(), np.array([2.0**20, 2.0**20 if one_unit else 2.0**-20])
    rescaled = Sample(sample.draws * unit, sample.scores / unit)
    f = {name: _in_units(function, unit) for name, function in functions().items()}
    close(use(case)(rescaled, f), use(case)(sample))


def _in_units(f, unit: np.ndarray):
    return lambda x: f(x / unit)


@law("take dtypes from x, and keep the basis of order one on standardised draws.", of_linear_family)
def estimates_work_in_float32(case: FamilyCase) -> None:
    """In single precision the estimate is finite and within a tenth of a plain standard error."""
    sample = skewed_sample()
    exact = use(case)(sample)
    single = use(case)(Sample(sample.draws, sample.scores, dtype=np.float32))
    check_honest(single)
    error = np.abs(single.value - exact.value) / np.maximum(exact.plain_mcse, exact.mcse)
    expect(
        np.max(error) < 0.1, f"float32 moves the estimate by {np.max(error):.2g} standard errors"
    )


@law("take any array: use jnp.asarray(x).")
def estimates_take_any_memory_layout(case: FamilyCase) -> None:
    """Read-only, Fortran-ordered and strided draws give the same estimate, to the bit."""
    sample, expected = skewed_sample(), use(case)(skewed_sample())
    for name, (x, score) in layouts(sample.draws, sample.scores):
        expect(
            same_bits(use(case)(Sample(x, score)), expected), f"{name} draws gave different values"
        )


@law(
    "a huge penalty must give plain Monte Carlo, because g is linear in the parameters.",
    of_linear_family,
)
def no_parameters_is_plain_monte_carlo(case: FamilyCase) -> None:
    """With a huge penalty, the estimate is the plain average."""
    result = estimate(functions(), skewed_sample(), case.family, penalty=Ridge(1e30))
    error = np.abs(result.value - result.plain_value) / result.plain_mcse
    expect(
        np.max(error) <= CLOSE,
        f"the estimate is {np.max(error):.1e} standard errors from the average",
    )


@law(
    "make every field an array, a number, a string, a tuple or a module, with equal values after loading; "
    "an activation must be one that steinax knows by name."
)
def survives_saving(case: FamilyCase) -> None:
    """A fitted control variate is the same after saving and loading, to the bit."""
    sample = skewed_sample()
    control = fit(functions(), sample, case.family, solver=use(case).solver)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.npz")
        control.save(path)
        loaded = ControlVariate.load(path)
    before, after = control(sample.draws, sample.scores), loaded(sample.draws, sample.scores)
    expect(same_bits(before, after), "the loaded control variate gives different values")
    expect(loaded.names == control.names, "the loaded control variate has different names")


USE_LAWS: tuple[Law, ...] = (
    estimates_are_honest,
    estimates_are_the_same_bits_twice,
    order_of_chains_changes_nothing,
    estimates_follow_f,
    units_of_draws_change_nothing,
    estimates_work_in_float32,
    estimates_take_any_memory_layout,
    no_parameters_is_plain_monte_carlo,
    survives_saving,
)


FEW = 10  # draws in each chain: one law refits for every draw


@dataclass(frozen=True)
class SplitCase:
    """A split of draws into those used in the fit and those averaged."""

    split: AbstractSplit

    def control(self, problem: Problem):
        """Compute the residuals of the split, with its note and reason."""
        return self.split.control(problem, CHAINS, Exact(), jax.random.key(0))


def _problem() -> Problem:
    target = skewed(1)
    x = target.draw(np.random.default_rng(4), CHAINS * FEW)
    f = jnp.asarray(np.sin(x))
    return Problem(
        Polynomial(1),
        (NoPenalty(),),
        LeastSquares(),
        x,
        np.asarray(target.score(x)),
        f,
    )


@law("return (n, k) residuals, a note, and the reason for having no standard error, or None.")
def gives_residuals_of_whole_chains(case: SplitCase) -> None:
    """Residuals are finite, with equally many of each chain."""
    result = case.control(_problem())
    shape = result.residual.shape
    expect(len(shape) == 2, f"the residuals have shape {shape}: give (n, k), chain after chain")
    expect(0 < shape[0] <= CHAINS * FEW and shape[1] == 1, f"shape {shape}")
    expect(
        shape[0] % CHAINS == 0,
        f"{shape[0]} residuals of {CHAINS} chains: take equally many of each",
    )
    expect(np.all(np.isfinite(result.residual)), "the residuals are not finite")
    expect(result.reason is None or len(result.reason) > 20, "say why there is no standard error")
    expect(result.note, "describe the fit in the note")


@law("a draw that is averaged must not be used in its own fit; if it is, say so in `reason`.")
def error_bars_are_for_held_out_draws(case: SplitCase) -> None:
    """Changing f at one averaged draw changes f - g at that draw by the same amount."""
    problem = _problem()
    before = case.control(problem)
    if before.reason is not None:
        return
    honest = 0
    for i in range(CHAINS * FEW):
        moved = np.array(problem.f)
        moved[i] += 100.0
        after = case.control(replace(problem, f=moved))
        honest += int(np.sum(np.abs(after.residual - before.residual - 100.0) < 1e-8))
    averaged = len(before.residual)
    expect(
        honest == averaged, f"{honest} of {averaged} averaged draws were held out of their own fit"
    )


@law("take random numbers from the key, and set nothing globally.")
def gives_the_same_bits_twice(case: SplitCase) -> None:
    """Two runs with one problem and key give the same residuals, to the bit."""
    with nothing_changes():
        first, second = case.control(_problem()), case.control(_problem())
    expect(
        same_bits(first.residual, second.residual),
        "the same problem and key gave different residuals",
    )


@law("treat chains alike: split each of them in the same way, or leave out whole chains.")
def chains_may_come_in_any_order(case: SplitCase) -> None:
    """Chains in another order give the same estimate."""
    sample, order = skewed_sample(), [2, 0, 3, 1]
    reordered = Sample(sample.draws[order], sample.scores[order])
    estimates = [
        estimate(functions(), draws, Polynomial(2), split=case.split)
        for draws in (reordered, sample)
    ]
    if estimates[0].reason is None:
        close(estimates[0], estimates[1])
    for result in estimates:
        check_honest(result)


@law("raise a ValueError that says how many draws are needed, or give honest residuals.")
def few_draws_are_refused_or_honest(case: SplitCase) -> None:
    """Samples of two to twelve draws are refused with advice or give an honest estimate."""
    for chains, length in ((1, 2), (2, 1), (2, 3), (4, 3), (1, 12)):
        sample = skewed(1).sample(5, chains, length)
        outcome(lambda sample=sample: estimate("x", sample, Polynomial(1), split=case.split))


SPLIT_LAWS: tuple[Law, ...] = (
    gives_residuals_of_whole_chains,
    error_bars_are_for_held_out_draws,
    gives_the_same_bits_twice,
    chains_may_come_in_any_order,
    few_draws_are_refused_or_honest,
)
