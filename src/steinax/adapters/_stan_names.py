"""Stan's flat columns, `theta.1` and `L.2.1`, as variables with a shape and names people know."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..data._variables import element

if TYPE_CHECKING:
    from xarray import Dataset

_PART = re.compile(r"(?P<mark>[.:])(?P<word>\w+)")


class Element(NamedTuple):
    """One column: the variable that it belongs to, and where in it (zero-based)."""

    variable: str
    place: tuple[int, ...]

    @property
    def label(self) -> str:
        """The name of the element, as ArviZ writes it."""
        return element(self.variable, self.place)


def parse_column(column: str) -> Element:
    """The variable and the zero-based index of one of Stan's columns.

    Stan counts from 1 and joins by dots. The members of a tuple follow a colon, and the two parts of
    a complex number have names: both become variables of their own, as a tuple has no one shape and
    an estimate is a real number.

    >>> parse_column("L.2.1").label
    'L[1, 0]'
    >>> parse_column("pair.3:2.1").label, parse_column("z.4.imag").label
    ('pair:2[2, 0]', 'z.imag[3]')
    """
    parts = list(_PART.finditer(column))
    variable = column[: parts[0].start()] if parts else column
    index = []
    for part in parts:
        if part["mark"] == "." and part["word"].isdecimal():
            index.append(int(part["word"]) - 1)
        else:
            variable += part.group()
    return Element(variable, tuple(index))


class Layout(NamedTuple):
    """Where the elements of one variable are among the columns, in row-major order."""

    positions: np.ndarray
    shape: tuple[int, ...]


def find_variables(columns: Sequence[str]) -> dict[str, Layout]:
    """Each variable with its shape; elements go by their index, so Stan's column order is no matter.

    >>> find_variables(["mu", "L.1.1", "L.2.1", "L.1.2", "L.2.2"])["L"]
    Layout(positions=array([1, 3, 2, 4]), shape=(2, 2))
    """
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for position, column in enumerate(columns):
        variable, index = parse_column(column)
        found.setdefault(variable, {})[index] = position
    return {variable: _layout(variable, places) for variable, places in found.items()}


def _layout(variable: str, places: dict[tuple[int, ...], int]) -> Layout:
    ranks = {len(index) for index in places}
    shape = tuple(max(sizes) + 1 for sizes in zip(*places, strict=False))
    if len(ranks) > 1 or len(places) != np.prod(shape, dtype=int):
        raise ValueError(
            f"the {len(places)} columns of {variable} do not fill an array of shape {shape}: give the "
            "files as Stan wrote them, with all columns."
        )
    return Layout(np.array([places[index] for index in sorted(places)]), shape)


def as_dataset(columns: Sequence[str], values: np.ndarray) -> "Dataset":
    """Columns (chain, draw, column) as variables, dimensions and coordinates named as ArviZ does."""
    import xarray

    variables, coordinates = (
        {},
        {"chain": np.arange(len(values)), "draw": np.arange(values.shape[1])},
    )
    for name, (positions, shape) in find_variables(columns).items():
        axes = [f"{name}_dim_{axis}" for axis in range(len(shape))]
        coordinates |= {axis: np.arange(size) for axis, size in zip(axes, shape, strict=True)}
        array = values[..., positions].reshape(*values.shape[:2], *shape)
        variables[name] = (("chain", "draw", *axes), array)
    return xarray.Dataset(variables, coordinates)


def name_unconstrained(
    columns: Sequence[str], draws: np.ndarray, posterior: "Dataset | None"
) -> tuple[str, ...]:
    """Names of the unconstrained columns: the model's own only for what the model has as it is.

    Stan gives `tau` to the logarithm of tau as well, which here is `tau_free__`. A variable keeps
    its name if all its columns equal those of the constrained variable.

    Args:
        columns: Stan's names of the unconstrained columns.
        draws: their values, (chain, draw, column).
        posterior: the constrained variables; without them nothing is known to be untransformed.
    """
    unconstrained = find_variables(columns)
    kept = {
        name
        for name, (positions, shape) in unconstrained.items()
        if posterior is not None
        and name in posterior
        and posterior[name].shape[2:] == shape
        and np.array_equal(_flat(posterior[name].values), draws[..., positions])
    }
    return tuple(
        element(variable if variable in kept else f"{variable}_free__", index)
        for variable, index in map(parse_column, columns)
    )


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(*values.shape[:2], -1)


def diagnostic_size(columns: Sequence[str]) -> int:
    """The number of parameters if these columns are of a diagnostic table, else 0.

    Such a table has, after what belongs to the sampler, d values, d momenta `p_*` and d gradients
    `g_*`. The prefixes alone do not tell: a parameter may itself be called `p_x` or `g_x`.

    >>> diagnostic_size(["lp__", "energy__", "mu", "g_x", "p_mu", "p_g_x", "g_mu", "g_g_x"])
    2
    """
    names = model_columns(columns)
    size, rest = divmod(len(names), 3)
    values, momenta, gradients = names[:size], names[size : 2 * size], names[2 * size :]
    alike = momenta == [f"p_{n}" for n in values] and gradients == [f"g_{n}" for n in values]
    return size if not rest and alike else 0


def model_columns(columns: Sequence[str]) -> list[str]:
    """The columns without the sampler's own in front, whose names end as none of a model may."""
    return [column for column in columns if not column.endswith("__")]
