"""Checks that user-defined families, kernels, solvers, splits and adapters keep the contract of steinax.

The components of steinax pass the same checks. They need no other package; the Hypothesis strategies
of `steinax.checks.strategies` need `pip install steinax[checks]`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..estimation import AbstractSplit
from ..families import AbstractFamily
from ..kernels import AbstractKernel
from ..objectives import AbstractObjective, AbstractPenalty
from ..operators import AbstractOperator
from ..solvers import AbstractSolver
from ._adapter import ADAPTER_LAWS, AdapterCase, Read
from ._check import Check, CheckFailed, bind, run
from ._estimator import Estimator, estimator_checks, outcome
from ._family import FAMILY_LAWS, FamilyCase
from ._kernel import KERNEL_LAWS, OPERATOR_LAWS, KernelCase
from ._laws import Shape
from ._solver import OBJECTIVE_LAWS, PENALTY_LAWS, SOLVER_LAWS, SolverCase
from ._split import SPLIT_LAWS, USE_LAWS, SplitCase

__all__ = [
    "Check",
    "CheckFailed",
    "Shape",
    "check_adapter",
    "check_estimate",
    "check_family",
    "check_kernel",
    "check_objective",
    "check_operator",
    "check_penalty",
    "check_solver",
    "check_split",
    "checks_for",
    "outcome",
]


def checks_for(thing: Any, **options: Any) -> Iterator[tuple[str, Check]]:
    """Yield the name and the check of every law for an object, as `pytest.mark.parametrize` takes them.

    Args:
        thing: a family, kernel, operator, penalty, objective, solver or split; a function of integrands
            and a sample, such as `steinax.estimate`; or, with `adapter=True`, a function without
            arguments that reads a Sample.
        options: those of the function that runs all the checks, such as `shape` of `check_family`.

    >>> import steinax as sx
    >>> [name for name, check in checks_for(sx.NoPenalty())]
    ['is zero at zero', 'is the form it says', 'has a gradient', 'has a strength']
    """
    match thing:
        case AbstractFamily():
            yield from bind(FAMILY_LAWS + USE_LAWS, thing, FamilyCase(thing, **options))
        case AbstractKernel():
            yield from bind(KERNEL_LAWS, thing, KernelCase(thing, **options))
        case AbstractSolver():
            yield from bind(SOLVER_LAWS, thing, SolverCase(thing, **options))
        case AbstractSplit():
            yield from bind(SPLIT_LAWS, thing, SplitCase(thing))
        case AbstractOperator():
            yield from bind(OPERATOR_LAWS, thing, thing)
        case AbstractPenalty():
            yield from bind(PENALTY_LAWS, thing, thing)
        case AbstractObjective():
            yield from bind(OBJECTIVE_LAWS, thing, thing)
        case _ if callable(thing) and options.pop("adapter", False):
            yield from bind(ADAPTER_LAWS, thing, AdapterCase(thing, **options))
        case _ if callable(thing):
            yield from estimator_checks(thing)
        case _:
            raise TypeError(
                f"there are no checks for a {type(thing).__name__}: give a family, kernel, operator, "
                "penalty, objective, solver, split, or a function."
            )


def check_family(family: AbstractFamily, *, shape: Shape = Shape.ANALYTIC) -> None:
    r"""Check a family: $E g = 0$, overrides equal to the defaults, pure functions, honest estimates.

    Args:
        family: the family, with all its settings.
        shape: how smooth its features are, which decides how exact quadrature must be.

    Raises:
        CheckFailed: at the first check that fails, with advice on how to fix it.

    >>> import steinax as sx
    >>> check_family(sx.Polynomial(1))
    """
    run(checks_for(family, shape=shape))


def check_kernel(
    kernel: AbstractKernel, *, first: Shape = Shape.ANALYTIC, second: Shape | None = Shape.ANALYTIC
) -> None:
    """Check a kernel: symmetric and positive, with correct Stein kernels of mean zero.

    Args:
        kernel: the kernel.
        first: how smooth its first-order Stein kernel is.
        second: how smooth its second-order Stein kernel is; None if the kernel is too rough for one.

    >>> import steinax as sx
    >>> check_kernel(sx.kernels.SquaredExponential(1.0))
    """
    run(checks_for(kernel, first=first, second=second))


def check_operator(operator: AbstractOperator) -> None:
    r"""Check a Stein operator: $E[\mathcal{L} u] = 0$, linear, with a positive Stein kernel.

    >>> import steinax as sx
    >>> check_operator(sx.Langevin())
    """
    run(checks_for(operator))


def check_penalty(penalty: AbstractPenalty) -> None:
    """Check a penalty: zero at zero parameters, differentiable, quadratic if declared so.

    >>> import steinax as sx
    >>> check_penalty(sx.Ridge(0.1))
    """
    run(checks_for(penalty))


def check_objective(objective: AbstractObjective) -> None:
    """Check an objective: zero for a perfect fit, invariant to the order of draws, quadratic if declared so.

    >>> import steinax as sx
    >>> check_objective(sx.LeastSquares())
    """
    run(checks_for(objective))


def check_solver(solver: AbstractSolver, *, tolerance: float = 1e-6) -> None:
    """Check a solver: it finds the least-squares fit, and cross-fitting holds out each fold.

    Args:
        solver: the solver.
        tolerance: the largest distance from the best fit, in standard deviations of f.

    >>> import steinax as sx
    >>> check_solver(sx.Exact())
    """
    run(checks_for(solver, tolerance=tolerance))


def check_split(split: AbstractSplit) -> None:
    """Check a split: draws that are averaged with an error bar were not used in the fit.

    >>> import steinax as sx
    >>> check_split(sx.CrossFit(4))
    """
    run(checks_for(split))


def check_adapter(
    read: Read,
    *,
    chains: int | None = None,
    length: int | None = None,
    dim: int | None = None,
    names: Sequence[str] | None = None,
    log_density: Callable[[np.ndarray], float] | None = None,
) -> None:
    """Check a function that reads draws and scores of another package into a Sample.

    Args:
        read: a function without arguments that returns the Sample.
        chains: the expected number of chains.
        length: the expected number of draws in each chain.
        dim: the expected number of dimensions.
        names: the expected names of the dimensions.
        log_density: of one draw, (dim,), up to a constant: scores are compared with its finite differences.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> check_adapter(lambda: sx.Sample(x, -x), chains=4, log_density=lambda x: -np.sum(x**2) / 2)
    """
    expected = {"chains": chains, "length": length, "dim": dim, "names": names}
    run(checks_for(read, adapter=True, log_density=log_density, **expected))


def check_estimate(function: Estimator) -> None:
    """Check a function of integrands and a sample on a table of unusual and invalid input.

    Each input must give an error that says what to do, NaN with a reason, or a number with an error bar
    next to the plain average of NumPy and ArviZ: never a silent number, a warning or a bare error.

    >>> import steinax as sx
    >>> check_estimate(lambda f, sample: sx.estimate(f, sample, sx.Polynomial(1)))
    """
    run(estimator_checks(function))
