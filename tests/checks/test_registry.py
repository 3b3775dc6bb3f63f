"""Nothing escapes the laws: every concrete class that steinax exports has a row."""

import inspect

import pytest

import registry
import steinax as sx
from steinax.families import AbstractCentres

BASES = (
    sx.operators.AbstractOperator,
    sx.kernels.AbstractKernel,
    sx.kernels.AbstractHeuristic,
    sx.families.AbstractFamily,
    AbstractCentres,
    sx.objectives.AbstractObjective,
    sx.objectives.AbstractPenalty,
    sx.solvers.AbstractSolver,
    sx.estimation.AbstractSplit,
)
PUBLIC = {
    name: getattr(home, name)
    for home in (sx, sx.contrib)
    for name in home.__all__
    if inspect.isclass(getattr(home, name))
    and issubclass(getattr(home, name), BASES)
    and not name.startswith("Abstract")
}
REGISTERED = {
    cls for table in registry.TABLES for row in table for cls in registry.classes(row.make())
}
REGISTERED |= {
    cls
    for row in registry.SPACES
    for space in [row.make().space]
    for part in (space, space.operator, space.potential_operator, space.families(1000, 2))
    for cls in registry.classes(part)
}
OF_SPACES = [name for name in sx.spaces.__all__ if not name.startswith("Abstract")]


@pytest.mark.parametrize("name", OF_SPACES)
def test_every_space_has_a_row(name: str) -> None:
    assert getattr(sx.spaces, name) in REGISTERED, f"add a row for {name} to SPACES"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_class_has_a_row(name: str) -> None:
    assert PUBLIC[name] in REGISTERED, f"add a row for {name} to tests/registry.py"


def test_the_search_finds_something() -> None:
    assert len(PUBLIC) > 20
    assert "Diffusion" in PUBLIC


@pytest.mark.parametrize("table", registry.TABLES, ids=lambda table: type(table[0].make()).__name__)
def test_names_are_distinct(table) -> None:
    names = [row.name for row in table]
    assert len(set(names)) == len(names)
