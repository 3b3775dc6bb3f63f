"""Convert Stan's flat columns, `theta.1` and `L.2.1`, to variables with shapes and ArviZ's names."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data import element
from ._pytrees import axes_and_labels

if TYPE_CHECKING:
    from xarray import Dataset

_PART = re.compile(r"(?P<mark>[.:])(?P<word>\w+)")


class Element(NamedTuple):
    """The variable that a column belongs to, and its zero-based index there."""

    variable: str
    place: tuple[int, ...]

    @property
    def label(self) -> str:
        """The name of the element, as ArviZ writes it."""
        return element(self.variable, self.place)


def parse_column(column: str) -> Element:
    """Parse the name of one of Stan's columns into a variable and a zero-based index.

    Stan counts from 1 and joins by dots. The members of a tuple follow a colon, and the two parts of
    a complex number have names: these become separate variables, as the members of a tuple differ in
    shape and an estimate is a real number.

    >>> parse_column("L.2.1").label
    'L[1, 0]'
    >>> parse_column("pair.3:2.1").label, parse_column("z.4.imag").label
    ('pair:2[2, 0]', 'z.imag[3]')
    """
    matches = list(_PART.finditer(column))
    variable = column[: matches[0].start()] if matches else column
    index = []
    for match in matches:
        if match["mark"] == "." and match["word"].isdecimal():
            index.append(int(match["word"]) - 1)
        else:
            variable += match.group()
    return Element(variable, tuple(index))


class Layout(NamedTuple):
    """Columns of the elements of one variable, in row-major order, and its shape."""

    positions: np.ndarray
    shape: tuple[int, ...]


def find_variables(columns: Sequence[str]) -> dict[str, Layout]:
    """Find all variables with their shapes; elements are sorted by index, not by Stan's column order.

    >>> find_variables(["mu", "L.1.1", "L.2.1", "L.1.2", "L.2.2"])["L"]
    Layout(positions=array([1, 3, 2, 4]), shape=(2, 2))
    """
    elements: dict[str, dict[tuple[int, ...], int]] = {}
    for position, column in enumerate(columns):
        variable, index = parse_column(column)
        elements.setdefault(variable, {})[index] = position
    return {variable: _layout(variable, places) for variable, places in elements.items()}


def _layout(variable: str, places: dict[tuple[int, ...], int]) -> Layout:
    ranks = {len(index) for index in places}
    shape = tuple(max(sizes) + 1 for sizes in zip(*places, strict=False))
    if len(ranks) > 1 or len(places) != np.prod(shape, dtype=int):
        raise ValueError(
            f"the {len(places)} columns of {variable} do not fill an array of shape {shape}: give the "
            "files as Stan wrote them, with all columns."
        )
    return Layout(np.array([places[index] for index in sorted(places)]), shape)


def stan_dataset(
    columns: Sequence[str],
    values: np.ndarray,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> "Dataset":
    """Convert columns (chain, draw, column) to a Dataset, with names and labels of the axes as in ArviZ."""
    from arviz_base import dict_to_dataset

    variables = {
        name: values[..., positions].reshape(*values.shape[:2], *shape)
        for name, (positions, shape) in find_variables(columns).items()
    }
    return dict_to_dataset(
        variables,
        sample_dims=["chain", "draw"],
        check_conventions=False,
        **axes_and_labels(dims, coords, variables),
    )


def name_unconstrained(
    columns: Sequence[str], draws: np.ndarray, posterior: "Dataset | None"
) -> tuple[str, ...]:
    """Name the unconstrained columns, with the suffix `_free__` for transformed variables.

    Stan uses the name `tau` for the logarithm of tau as well, which here is `tau_free__`. A variable
    keeps its name if all its columns equal those of the constrained variable.

    Stan names the elements of all variables column by column, but in arrays, such as `array[2] vector[3] b`,
    the unconstrained values are one member after the other. Which axes are an array's is found by comparison
    with the constrained variable; without it the elements of such a variable are numbered.

    Args:
        columns: Stan's names of the unconstrained columns.
        draws: their values, (chain, draw, column).
        posterior: the constrained variables; without them every variable gets the suffix.
    """
    names = [""] * len(columns)
    for variable, (unordered, shape) in find_variables(columns).items():
        positions = np.sort(unordered)
        free = draws[..., positions].reshape(-1, len(positions))
        given = None if posterior is None else posterior.get(variable)
        values = None if given is None else given.values.reshape(len(free), *given.shape[2:])
        index = _order(variable, shape, free, values)
        is_same = (
            values is not None
            and values.shape[1:] == shape
            and np.array_equal(_elements(values, index), free)
        )
        for position, place in zip(positions, index, strict=True):
            names[position] = element(variable if is_same else f"{variable}_free__", place)
    return tuple(names)


def _order(
    variable: str, shape: tuple[int, ...], free: np.ndarray, values: np.ndarray | None
) -> list[tuple[int, ...]]:
    """Find the index of each unconstrained column of a variable.

    Args:
        variable: its name.
        shape: the sizes of the unconstrained variable, by Stan's names.
        free: the columns in their order, (draw, column).
        values: the constrained variable, (draw, ...), if it is known.
    """
    by_column = [place[::-1] for place in np.ndindex(*shape[::-1])]
    if len(shape) < 2 or ":" in variable or variable.endswith((".real", ".imag")):
        return by_column
    if values is None:
        return [(i,) for i in range(len(by_column))]
    by_member = list(np.ndindex(*shape))
    if values.shape[1:] != shape:  # simplexes, matrices with constraints: members of arrays
        return by_member
    matrices = [
        (*member, *place[::-1])
        for member in np.ndindex(*shape[:-2])
        for place in np.ndindex(*shape[:-3:-1])
    ]
    orders = (matrices, by_member)
    ranked = _ranks(free)

    def agreement(order: list[tuple[int, ...]]) -> float:
        """Sum the rank correlations: elements with bounds are monotone functions of their own columns."""
        return float(np.abs((ranked * _ranks(_elements(values, order))).sum(axis=0)).sum())

    return max(orders, key=agreement)


def _elements(values: np.ndarray, order: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Put elements of a variable, (draw, ...), side by side: (draw, column)."""
    return np.stack([values[:, *place] for place in order], axis=-1)


def _ranks(columns: np.ndarray) -> np.ndarray:
    """Replace values by their ranks, centred and scaled so that products sum to rank correlations."""
    ranks = columns.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable").astype(float)
    ranks -= ranks.mean(axis=0)
    return ranks / np.maximum(np.sqrt((ranks**2).sum(axis=0)), 1e-300)


def diagnostic_size(columns: Sequence[str]) -> int:
    """Count the parameters if these columns are of a diagnostic table, else return 0.

    Such a table has, after the columns of the sampler, d values, d momenta `p_*` and d gradients
    `g_*`. The prefixes are not sufficient: a parameter may itself be called `p_x` or `g_x`.

    >>> diagnostic_size(["lp__", "energy__", "mu", "g_x", "p_mu", "p_g_x", "g_mu", "g_g_x"])
    2
    """
    names = model_columns(columns)
    size, remainder = divmod(len(names), 3)
    values, momenta, gradients = names[:size], names[size : 2 * size], names[2 * size :]
    alike = momenta == [f"p_{n}" for n in values] and gradients == [f"g_{n}" for n in values]
    return size if not remainder and alike else 0


def model_columns(columns: Sequence[str]) -> list[str]:
    """Remove the columns of the sampler, whose names end in `__`, which Stan reserves."""
    return [column for column in columns if not column.endswith("__")]
