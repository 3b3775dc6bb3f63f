"""The variables of a model, accessed by name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .._require import UnknownNameError, no_attribute
from .._show import some_of
from .._types import AnyArray

if TYPE_CHECKING:
    import xarray


AXES = ("chain", "draw")
MAIN = "posterior"
KEEP = "A number in isel drops an axis, and a list keeps it: .isel(chain=[0])."


class Variables:
    """Variables of a model: constrained parameters and quantities derived from them.

    They are read on demand, so the log likelihoods in a file cost nothing until they are used. A plain
    name refers to a variable of the posterior; variables of other groups are named by a path.

    Args:
        tree: groups of variables with axes (chain, draw, ...), such as `posterior` and
            `log_likelihood`: a DataTree, or a Dataset, which is taken as the posterior.

    >>> import arviz_base, numpy as np
    >>> tree = arviz_base.from_dict(
    ...     {
    ...         "posterior": {"tau": np.ones((4, 250))},
    ...         "log_likelihood": {"y": np.zeros((4, 250, 8))},
    ...     }
    ... )
    >>> variables = Variables(tree)
    >>> variables.names, variables["log_likelihood/y"].shape
    (('tau',), (4, 250, 8))
    >>> variables.labelled("log_likelihood/y")[1][:2]
    ['log_likelihood/y[0]', 'log_likelihood/y[1]']
    """

    def __init__(self, tree: Any):
        self.tree: xarray.DataTree = _as_tree(tree)
        groups = ((path.strip("/"), node) for path, node in self.tree.subtree_with_keys)
        self._groups = {
            path: node.dataset for path, node in groups if set(AXES) <= set(node.dataset.dims)
        }
        if MAIN not in self._groups:
            raise ValueError(
                f"the groups {', '.join(self._groups) or 'given'} hold no {MAIN!r} with axes (chain, draw): "
                f"give a DataTree with that group, or a Dataset of its variables. {KEEP}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables of the posterior."""
        return tuple(_random(self._groups[MAIN]))

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of chains and the number of draws in each."""
        sizes = self._groups[MAIN].sizes
        return sizes["chain"], sizes["draw"]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __getitem__(self, name: str) -> "xarray.DataArray":
        """Return a variable with axes (chain, draw, ...)."""
        array = self._find(name)
        if array is None:
            raise UnknownNameError(
                f"no variable is called {name!r}: there are {', '.join(self.names)}. Use one of these."
            )
        return array.transpose(*AXES, ...)

    def labelled(self, name: str) -> tuple[np.ndarray, list[str]] | None:
        """Read the values and element names of a variable, of one element or of a whole group.

        Args:
            name: `"theta"`, `"theta[Choate]"` or `"theta[0]"`, `"log_likelihood/y"`, `"log_likelihood"`.

        Returns:
            Values (chain, draw, k) and k names; None if there is no such variable.
        """
        if name in self:
            return _elements(name, self[name])
        if name in self._groups:
            paths = [f"{name}/{variable}" for variable in _random(self._groups[name])]
            blocks = [_elements(path, self[path]) for path in paths]
            labels = [label for _, names in blocks for label in names]
            return np.concatenate([values for values, _ in blocks], axis=-1), labels
        return self._one_element(name)

    def isel(self, chain: Any = slice(None), draw: Any = slice(None)) -> "Variables":
        """Select chains and draws without reading them; groups with other axes are kept unchanged.

        Args:
            chain: a slice, a list of numbers or an array of flags.
            draw: a slice, a list of numbers or an array of flags.
        """
        import xarray

        groups = {path: node.dataset for path, node in self.tree.subtree_with_keys}
        for path, group in groups.items():
            if tuple(group.sizes.get(axis) for axis in AXES) == self.sizes:
                groups[path] = group.isel(chain=chain, draw=draw)
        return Variables(xarray.DataTree.from_dict(groups))

    def extended(self, more: "Variables") -> "Variables":
        """Append the variables of further draws of the same chains; keep groups with other axes unchanged."""
        import xarray

        groups = {path: node.dataset for path, node in self.tree.subtree_with_keys}
        added = {path: node.dataset for path, node in more.tree.subtree_with_keys}
        for path, group in groups.items():
            if tuple(group.sizes.get(axis) for axis in AXES) == self.sizes and path in added:
                pair = [each.drop_vars("draw", errors="ignore") for each in (group, added[path])]
                groups[path] = xarray.concat(
                    pair,
                    "draw",
                    data_vars="minimal",
                    coords="minimal",
                    compat="override",
                    join="override",
                )
        return Variables(xarray.DataTree.from_dict(groups))

    def _find(self, name: str) -> "xarray.DataArray | None":
        """Look up a variable by name or path; None if there is none."""
        group, _, variable = name.rpartition("/")
        dataset = self._groups.get(group or MAIN)
        if dataset is None or variable not in _random(dataset):
            return None
        return dataset[variable]

    def _one_element(self, name: str) -> tuple[np.ndarray, list[str]] | None:
        """Read one element of a variable, named by labels or by numbers; None if there is none."""
        base, bracket, index = name.partition("[")
        if not bracket or not name.endswith("]") or base not in self:
            return None
        array = self[base]
        spaced = re.sub(r",\s*", ", ", name)  # as Stan and R write it: x[0,1]
        for names in (labels(base, array), labels(base, array.drop_vars(array.coords))):
            found = next((one for one in (name, spaced) if one in names), None)
            if found is not None:
                position = np.unravel_index(names.index(found), array.shape[2:])
                return read(array[..., *position])[..., None], [name]
        raise UnknownNameError(
            f"{base!r} has no element [{index}: its elements are {some_of(labels(base, array), 5)}. "
            "Use one of these; positions count from 0."
        )

    def __repr__(self) -> str:
        others = [path for path in self._groups if path != MAIN]
        also = f"; groups {', '.join(others)}" if others else ""
        return f"Variables({', '.join(self.names)}{also})"


def _as_tree(tree: Any) -> "xarray.DataTree":
    """Convert variables, a Dataset or a mapping of groups to a DataTree."""
    import xarray

    if isinstance(tree, Variables):
        return tree.tree
    if isinstance(tree, xarray.Dataset):
        return xarray.DataTree.from_dict({MAIN: unstacked(tree)})
    if isinstance(tree, Mapping) and not isinstance(tree, xarray.DataTree):
        arrays = [name for name, one in tree.items() if isinstance(one, np.ndarray | list)]
        if arrays:
            raise TypeError(
                f"variables is a dict of arrays, such as {arrays[0]!r}: give it to steinax.from_arrays(x, "
                "scores, variables=...), or give a Dataset."
            )
        return xarray.DataTree.from_dict(dict(tree))
    if not isinstance(tree, xarray.DataTree):
        raise TypeError(
            f"variables of type {type(tree).__name__}: give a DataTree with a group {MAIN!r}, or a Dataset."
        )
    return tree


def unstacked[T](array: T) -> T:
    """Undo the stacking of `az.extract` along `sample`: restore the axes chain and draw.

    Args:
        array: a DataArray or a Dataset; anything else, or not stacked, is returned unchanged.

    >>> import arviz_base, numpy as np
    >>> tree = arviz_base.from_dict({"posterior": {"mu": np.ones((4, 250))}})
    >>> unstacked(arviz_base.extract(tree)).shape
    (4, 250)
    """
    indexes: Any = getattr(array, "indexes", {})
    axis = next((dim for dim, index in indexes.items() if set(AXES) <= set(index.names)), None)
    if axis is None or axis in AXES:
        return array
    result = array.unstack(next(iter(array[axis].dims)))  # type: ignore[index]
    if result.sizes["chain"] * result.sizes["draw"] != len(indexes[axis]):
        raise ValueError(
            f"{len(indexes[axis])} stacked draws do not fill {result.sizes['chain']} chains of "
            f"{result.sizes['draw']}: extract all draws of every chain, without num_samples."
        )
    return result


def in_chains(array: Any, what: str) -> Any:
    """Transpose a DataArray or Dataset to the axes (chain, draw, ...); refuse it if it lacks them.

    Args:
        array: a labelled array with these axes in any order, or stacked by `az.extract`.
        what: its name in the error message.
    """
    result = unstacked(array)
    missing = [axis for axis in AXES if axis not in result.dims]
    if missing:
        raise ValueError(
            f"{what} has the axes ({', '.join(map(str, result.dims))}) and no {' and no '.join(missing)}: "
            f"give (chain, draw, ...). {KEEP}"
        )
    return result.transpose(*AXES, ...)


def is_labelled(array: object) -> bool:
    """Return whether an object is an xarray object, with named axes."""
    return hasattr(array, "dims") and hasattr(array, "coords")


def _random(dataset: "xarray.Dataset") -> list[str]:
    """List the variables of a group that have a value for each draw."""
    return [str(name) for name, array in dataset.data_vars.items() if set(AXES) <= set(array.dims)]


def labels(name: str, array: "xarray.DataArray", skipped: int = 2) -> list[str]:
    """Name the elements of an array as ArviZ does: `theta[Choate]`, `L[1, 0]`.

    Args:
        name: of the variable.
        array: its values.
        skipped: the number of axes before those of the variable, such as chain and draw.
    """
    axes = [
        array.coords[dim].values if dim in array.coords else range(size)
        for dim, size in list(array.sizes.items())[skipped:]
    ]
    shape = [len(axis) for axis in axes]
    return [
        element(name, [axis[i] for axis, i in zip(axes, index, strict=True)])
        for index in np.ndindex(*shape)
    ]


def element(name: str, index: Iterable[object]) -> str:
    """Name one element of a vector or an array: `beta[0]`, `L[1, 0]`."""
    inside = ", ".join(map(str, index))
    return f"{name}[{inside}]" if inside else name


def _elements(name: str, array: "xarray.DataArray") -> tuple[AnyArray, list[str]]:
    """Read the values, (chain, draw, k), and the names of the elements of a variable."""
    values = read(array)
    return values.reshape(*values.shape[:2], -1), labels(name, array)


def read(array: Any) -> np.ndarray:
    """Read the values of an array; a dask array is computed in this thread.

    A worker that asked its own cluster for the values would wait for itself.
    """
    if hasattr(array, "compute"):
        array = array.compute(scheduler="synchronous")
    return np.asarray(array)


def shape_of(names: Sequence[str]) -> tuple[int, ...]:
    """Infer the shape of the array whose elements have these names, in order.

    >>> (
    ...     shape_of(["L[a, 0]", "L[a, 1]", "L[b, 0]", "L[b, 1]"]),
    ...     shape_of(["L[0, 0]", "L[1, 0]", "L[1, 1]"]),
    ... )
    ((2, 2), (3,))
    """
    indices = [tuple(name.partition("[")[2].removesuffix("]").split(", ")) for name in names]
    if len({len(index) for index in indices}) == 1:
        axes = [list(dict.fromkeys(axis)) for axis in zip(*indices, strict=True)]
        if indices == list(product(*axes)):
            return tuple(map(len, axes))
    return (len(names),)


class ByName(Mapping):
    """Mapping of names to values, each of which is read at its first use.

    It is the argument of an integrand such as `lambda d: d["mu"] / d["tau"]` for each draw.

    Args:
        held: the values that have been read.
        names: the names of all values; those of `held` by default.
        read: reads a value that is not held; None if there are no others.

    >>> d = ByName({}, ["mu", "tau"], {"mu": 1.0, "tau": 2.0}.__getitem__)
    >>> d["tau"], d.held, list(d)
    (2.0, {'tau': 2.0}, ['mu', 'tau'])
    """

    def __init__(
        self,
        held: dict[str, Any],
        names: Sequence[str] = (),
        read: Callable[[str], Any] | None = None,
    ):
        self.held: dict[str, Any] = held
        self.names: Sequence[str] = names or tuple(held)
        self.read: Callable[[str], Any] | None = read
        self.asked: bool = False  # whether any name was asked for, existing or not

    def __getitem__(self, name: object) -> Any:
        if not isinstance(name, str):
            raise TypeError(
                f"variables are read by name, not by {name!r}: give a name, such as {some_of(self.names)}."
            )
        self.asked = True
        if name not in self.held:
            value = None if self.read is None else self.read(name)
            if value is None:
                raise UnknownNameError(
                    f"no variable is called {name!r}: there are {some_of(self.names)}. Use one of these."
                )
            self.held[name] = value
        return self.held[name]

    def __iter__(self) -> Iterator[str]:
        self.asked = True
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            if name in self.__dict__.get("names", ()):
                self[name]  # variables were asked for: this error is raised, and no other
            hint = f"write m[{name!r}], or give the function an argument called {name}"
            raise AttributeError(no_attribute("ByName", name, {name: hint}))

    def mapped(self, change: Callable[[Any], Any]) -> "ByName":
        """Apply a function to the values, each of which is computed at its first use."""
        return ByName({}, self.names, lambda name: change(self[name]))


ELEMENT = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")


def as_dataset(sample: Any) -> "xarray.Dataset":
    """Convert the unconstrained draws to a Dataset, with `beta[0]`, `beta[1]`, ... as one vector."""
    import xarray

    arrays = {}
    for base, members in _by_base(sample.names).items():
        columns, indices = [i for i, _ in members], [index for _, index in members]
        shape = _whole_array(indices)
        if shape is None:  # such as the lower triangle of a matrix
            arrays |= {sample.names[i]: (AXES, sample.draws[..., i]) for i in columns}
            continue
        values = sample.draws[..., columns].reshape(*sample.draws.shape[:2], *shape)
        arrays[base] = ((*AXES, *(f"{base}_dim_{j}" for j in range(len(shape)))), values)
    axes = {axis: np.arange(n) for axis, n in zip(AXES, sample.draws.shape, strict=False)}
    dataset = xarray.Dataset(arrays, coords=axes)
    return dataset.assign_coords(
        {dim: np.arange(n) for dim, n in dataset.sizes.items() if dim not in AXES}
    )


def _by_base(names: Sequence[str]) -> dict[str, list[tuple[int, tuple[int, ...]]]]:
    """Group columns by the name before their index, each with its place and index: () for a scalar."""
    groups: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for i, name in enumerate(names):
        element = ELEMENT.fullmatch(name)
        base = element[1] if element else name
        index = tuple(int(number) for number in element[2].split(",")) if element else ()
        groups.setdefault(base, []).append((i, index))
    return groups


def vectors_of(names: Sequence[str], least: int) -> tuple[np.ndarray, ...]:
    """Find the columns of each vector with a least number of members.

    >>> vectors_of(["mu", "theta[0]", "theta[1]", "theta[2]"], 2)
    (array([1, 2, 3]),)
    """
    groups = _by_base(names).values()
    return tuple(np.array([i for i, _ in group]) for group in groups if len(group) >= least)


def _whole_array(indices: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Infer the shape of the array whose elements have these indices, in order; None if incomplete."""
    if len({len(index) for index in indices}) > 1:
        return None
    shape = tuple(int(n) + 1 for n in np.max(indices, axis=0)) if indices[0] else ()
    return shape if indices == list(np.ndindex(*shape)) else None
