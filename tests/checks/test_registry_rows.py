"""Every row of the registry keeps the public contract.

The fast set has one row of each kind with every check of it. The other rows are slow, because each
compiles its own programs, and take turns: `STEINAX_FULL=1` makes all checks of all.
"""

from collections.abc import Iterator

import pytest

import registry
import steinax as sx
from full import cases
from steinax import checks

# How near a solver comes to the best fit, in standard deviations of f.
TOLERANCES = {"Stochastic": 1e-4}
FAST = {"Polynomial 1", "Langevin", "SquaredExponential", "Exact, primal", "CrossFit, 4 folds"}


def _options(row: registry.Row) -> dict:
    match row:
        case registry.KernelRow():
            return {"first": row.first, "second": row.second}
        case registry.FamilyRow():
            return {"shape": row.shape}
    if isinstance(row.make(), sx.solvers.AbstractSolver):
        return {"tolerance": TOLERANCES.get(row.name, 1e-6)}
    return {}


def _cases() -> Iterator:
    for turn, row in enumerate(row for table in registry.TABLES for row in table):
        thing = row.make()
        cheap = isinstance(thing, (sx.objectives.AbstractPenalty, sx.objectives.AbstractObjective))
        label, parts = f"{type(thing).__name__}, {row}, ", 1 if cheap or row.name in FAST else 16
        yield from cases(label, checks.checks_for(thing, **_options(row)), turn, parts)


@pytest.mark.slow
@pytest.mark.parametrize("check", list(_cases()))
def test_row_keeps_the_contract(check: checks.Check) -> None:
    check()
