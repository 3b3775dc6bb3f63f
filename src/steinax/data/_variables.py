from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import AnyArray

if TYPE_CHECKING:
    import xarray

AXES = ("chain", "draw")
MAIN = "posterior"


class Variables:
    """What a model calls its own: parameters where they are constrained, and all that follows from them.

    They are read when they are asked for, so a file's log likelihoods cost nothing until then. A name
    alone is that of a variable of the posterior; those of other groups are named by a path.

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
                "give a DataTree with that group, or a Dataset of its variables."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the variables of the posterior."""
        return tuple(_random(self._groups[MAIN]))

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of chains and of draws in each."""
        sizes = self._groups[MAIN].sizes
        return sizes["chain"], sizes["draw"]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __getitem__(self, name: str) -> "xarray.DataArray":
        """A variable, with axes (chain, draw, ...)."""
        found = self._find(name)
        if found is None:
            raise KeyError(f"no variable is called {name!r}: there are {', '.join(self.names)}.")
        return found.transpose(*AXES, ...)

    def labelled(self, name: str) -> tuple[np.ndarray, list[str]] | None:
        """The numbers of a variable, of one element of it or of a whole group, each with its name.

        Args:
            name: `"theta"`, `"theta[Choate]"` or `"theta[0]"`, `"log_likelihood/y"`, `"log_likelihood"`.

        Returns:
            Values (chain, draw, k) and k names; None if there is no such variable.
        """
        if name in self:
            return _elements(name, self[name])
        if name in self._groups:
            inside = [f"{name}/{variable}" for variable in _random(self._groups[name])]
            parts = [_elements(one, self[one]) for one in inside]
            labels = [label for _, more in parts for label in more]
            return np.concatenate([values for values, _ in parts], axis=-1), labels
        return self._one_element(name)

    def part(self, chain: int, draws: slice) -> "Variables":
        """Some draws of one chain, still unread."""
        import xarray

        cut = {
            path: group.isel(chain=slice(chain, chain + 1), draw=draws)
            for path, group in self._groups.items()
        }
        return Variables(xarray.DataTree.from_dict(cut))

    def _find(self, name: str) -> "xarray.DataArray | None":
        group, _, variable = name.rpartition("/")
        dataset = self._groups.get(group or MAIN)
        if dataset is None or variable not in _random(dataset):
            return None
        return dataset[variable]

    def _one_element(self, name: str) -> tuple[np.ndarray, list[str]] | None:
        base, bracket, index = name.partition("[")
        if not bracket or not name.endswith("]") or base not in self:
            return None
        array = self[base]
        for labels in (_labels(base, array), _labels(base, array.drop_vars(array.coords))):
            if name in labels:
                place = np.unravel_index(labels.index(name), array.shape[2:])
                return read(array[..., *place])[..., None], [name]
        raise KeyError(
            f"{base!r} has no element [{index}: its elements are {', '.join(_labels(base, array)[:5])}, ... "
            "Use one of these."
        )

    def __repr__(self) -> str:
        others = [path for path in self._groups if path != MAIN]
        also = f"; groups {', '.join(others)}" if others else ""
        return f"Variables({', '.join(self.names)}{also})"


def _as_tree(tree: Any) -> "xarray.DataTree":
    import xarray

    if isinstance(tree, Variables):
        return tree.tree
    if isinstance(tree, xarray.Dataset):
        return xarray.DataTree.from_dict({MAIN: tree})
    if isinstance(tree, Mapping) and not isinstance(tree, xarray.DataTree):
        return xarray.DataTree.from_dict(dict(tree))
    if not isinstance(tree, xarray.DataTree):
        raise TypeError(
            f"variables of type {type(tree).__name__}: give a DataTree with a group {MAIN!r}, or a Dataset."
        )
    return tree


def _random(dataset: "xarray.Dataset") -> list[str]:
    """The variables of a group that have a value for each draw."""
    return [str(name) for name, one in dataset.data_vars.items() if set(AXES) <= set(one.dims)]


def _labels(name: str, array: "xarray.DataArray") -> list[str]:
    """The names of the elements, as ArviZ has them: `theta[Choate]`, `L[1, 0]`."""
    axes = [
        array.coords[dim].values if dim in array.coords else range(size)
        for dim, size in list(array.sizes.items())[2:]
    ]
    shape = [len(axis) for axis in axes]
    return [
        element(name, [a[i] for a, i in zip(axes, at, strict=True)]) for at in np.ndindex(*shape)
    ]


def element(name: str, index: Iterable[object]) -> str:
    """The name of one element of a vector or an array: `beta[0]`, `L[1, 0]`."""
    inside = ", ".join(map(str, index))
    return f"{name}[{inside}]" if inside else name


def _elements(name: str, array: "xarray.DataArray") -> tuple[AnyArray, list[str]]:
    values = read(array)
    return values.reshape(*values.shape[:2], -1), _labels(name, array)


def read(array: Any) -> np.ndarray:
    """The numbers of an array, computed in this thread if it is dask's.

    A worker of a cluster that asked the cluster for them would wait for itself.
    """
    if hasattr(array, "compute"):
        array = array.compute(scheduler="synchronous")
    return np.asarray(array)
