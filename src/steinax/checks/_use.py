"""What estimates with a family must keep: laws of the family in use."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ..data import Sample
from ..estimation import Estimate, estimate
from ..families import AbstractFamily, AbstractLinearFamily
from ..fitting import ControlVariate, fit
from ..objectives import Ridge
from ..solvers import AbstractSolver, Stochastic
from ._check import Law, expect, law
from ._family import FamilyCase
from ._outcome import check_honest
from ._settings import layouts, nothing_changes, same_bits
from ._targets import skewed

CHAINS, LENGTH = 4, 24
CLOSE = 1e-9  # of the plain estimate's standard deviation


def functions() -> dict:
    """Two integrands: one of a low degree, one of none."""
    return {"square": lambda x: x[0] ** 2 + x[1], "wave": lambda x: jnp.sin(x[0])}


def draws() -> Sample:
    """A small sample of a skewed target."""
    return skewed(2).sample(3, CHAINS, LENGTH)


@dataclass(frozen=True)
class Use:
    """A family, and how it is fitted."""

    family: AbstractFamily
    solver: AbstractSolver | None = None

    def __call__(self, sample: Sample, f: object = None) -> Estimate:
        """The estimate."""
        wanted = functions() if f is None else f
        return estimate(wanted, sample, self.family, solver=self.solver)  # type: ignore[arg-type]


def use(case: FamilyCase) -> Use:
    """The estimate of a case; what is not linear is trained for two epochs only."""
    return Use(case.family, None if case.linear else Stochastic(epochs=2))


def _is_linear(case: FamilyCase) -> bool:
    return case.linear


def _knows_no_order(case: FamilyCase) -> bool:
    """Landmarks are every so many draws, so they are others when chains are in another order."""
    return case.linear and all(
        isinstance(term, AbstractLinearFamily)
        and (not term.centres_on_draws or term.is_whole_space)
        for term in case.family.terms
    )


def close(found: Estimate, expected: Estimate, factor: float = 1.0, shift: float = 0.0) -> None:
    """Estimates and errors agree, in units of the plain error, after the map of f."""
    unit = np.abs(factor) * expected.plain_mcse
    for name in ("value", "plain_value"):
        off = np.abs(getattr(found, name) - factor * getattr(expected, name) - shift) / unit
        expect(np.max(off) <= CLOSE, f"`{name}` is off by {np.max(off):.1e} plain standard errors")
    for name in ("mcse", "plain_mcse"):
        off = np.abs(getattr(found, name) - np.abs(factor) * getattr(expected, name)) / unit
        expect(np.max(off) <= 1e-6, f"`{name}` is off by {np.max(off):.1e} plain standard errors")


@law(
    "look at what `evaluate` gives on the draws of the message: it must be finite and of mean zero."
)
def estimates_are_honest(case: FamilyCase) -> None:
    """An estimate is finite with an error, or NaN with a reason; the plain column is the average."""
    sample = draws()
    found = use(case)(sample)
    check_honest(found)
    x = sample.draws
    plain = np.array([np.mean(x[..., 0] ** 2 + x[..., 1]), np.mean(np.sin(x[..., 0]))])
    expect(
        np.allclose(found.plain_value, plain, rtol=1e-12), "the plain column is no plain average"
    )


@law("draw random numbers from the key that is given, and keep nothing between calls.")
def estimates_are_the_same_bits_twice(case: FamilyCase) -> None:
    """The same input, the same bits; and no setting is changed on the way."""
    with nothing_changes():
        one, other = use(case)(draws()), use(case)(draws())
    expect(same_bits(one, other), "the same sample gave two estimates")


@law(
    "use draws as a set: no feature may depend on where in the chain a draw stands.",
    _knows_no_order,
)
def order_of_chains_changes_nothing(case: FamilyCase) -> None:
    """Chains in another order give the same estimate, beyond rounding."""
    sample, order = draws(), [2, 0, 3, 1]
    moved = Sample(sample.draws[order], sample.scores[order])
    close(use(case)(moved), use(case)(sample))


@law(
    "fit f by least squares with an intercept: nothing may depend on its unit or its zero.",
    _is_linear,
)
def estimates_follow_f(case: FamilyCase) -> None:
    """E[a f + b] = a E[f] + b, and the error is multiplied by |a|."""
    names = ("square", "wave")
    moved = {name: _moved(functions()[name], -4.0, 3.0) for name in names}
    close(use(case)(draws(), moved), use(case)(draws()), -4.0, 3.0)


def _moved(f, factor: float, shift: float):
    return lambda x: factor * f(x) + shift


@law("use the coordinates that `setup` is given: they are standardised already.", _is_linear)
def units_of_draws_change_nothing(case: FamilyCase) -> None:
    """Draws times a power of two, with scores divided by it, give the same estimate."""
    sample, unit = draws(), np.array([2.0**20, 2.0**-20])
    moved = Sample(sample.draws * unit, sample.scores / unit)
    f = {name: _in_units(one, unit) for name, one in functions().items()}
    close(use(case)(moved, f), use(case)(sample))


def _in_units(f, unit: np.ndarray):
    return lambda x: f(x / unit)


@law("take dtypes from x, and keep the basis of order one on standardised draws.", _is_linear)
def estimates_work_in_float32(case: FamilyCase) -> None:
    """In single precision the estimate is finite and within a tenth of a plain standard error."""
    sample = draws()
    exact = use(case)(sample)
    single = use(case)(Sample(sample.draws, sample.scores, dtype=np.float32))
    check_honest(single)
    off = np.abs(single.value - exact.value) / np.maximum(exact.plain_mcse, exact.mcse)
    expect(np.max(off) < 0.1, f"float32 moves the estimate by {np.max(off):.2g} standard errors")


@law("take any array: use jnp.asarray(x).")
def estimates_take_any_memory_layout(case: FamilyCase) -> None:
    """Read-only, Fortran-ordered and strided draws give the same bits."""
    sample, expected = draws(), use(case)(draws())
    for name, (x, score) in layouts(sample.draws, sample.scores):
        expect(same_bits(use(case)(Sample(x, score)), expected), f"{name} draws gave other values")


@law(
    "a penalty that forbids every parameter must leave plain Monte Carlo: g is linear in them.",
    _is_linear,
)
def no_parameters_is_plain_monte_carlo(case: FamilyCase) -> None:
    """Under an immense penalty the estimate is the plain average."""
    found = estimate(functions(), draws(), case.family, penalty=Ridge(1e30))
    off = np.abs(found.value - found.plain_value) / found.plain_mcse
    expect(
        np.max(off) <= CLOSE, f"the estimate is {np.max(off):.1e} standard errors from the average"
    )


@law(
    "make every field an array, a number, a text, a tuple or a module, with equal values after loading; "
    "an activation must be one that steinax names."
)
def survives_saving(case: FamilyCase) -> None:
    """A fitted control variate reads back as it was, to the bit."""
    sample = draws()
    made = fit(functions(), sample, case.family, solver=use(case).solver)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "g.npz")
        made.save(path)
        read = ControlVariate.load(path)
    one, other = made(sample.draws, sample.scores), read(sample.draws, sample.scores)
    expect(same_bits(one, other), "the loaded control variate gives other values")
    expect(read.names == made.names, "the loaded control variate has other names")


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
