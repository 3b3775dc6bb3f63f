"""Variables by name, and their columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .._show import some_of
from .._types import AnyArray

if TYPE_CHECKING:
    import xarray


AXES = ("chain", "draw")
MAIN = "posterior"
KEEP = "A number in isel drops an axis, and a list keeps it: .isel(chain=[0])."


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
                f"give a DataTree with that group, or a Dataset of its variables. {KEEP}"
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

    def isel(self, chain: Any = slice(None), draw: Any = slice(None)) -> "Variables":
        """Some chains and draws, still unread; groups that have other axes stay as they are.

        Args:
            chain: a slice, a list of numbers or an array of flags.
            draw: the same.
        """
        import xarray

        groups = {path: node.dataset for path, node in self.tree.subtree_with_keys}
        for path, group in groups.items():
            if tuple(group.sizes.get(axis) for axis in AXES) == self.sizes:
                groups[path] = group.isel(chain=chain, draw=draw)
        return Variables(xarray.DataTree.from_dict(groups))

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
        for known in (labels(base, array), labels(base, array.drop_vars(array.coords))):
            if name in known:
                place = np.unravel_index(known.index(name), array.shape[2:])
                return read(array[..., *place])[..., None], [name]
        raise KeyError(
            f"{base!r} has no element [{index}: its elements are {some_of(labels(base, array), 5)}. "
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
        return xarray.DataTree.from_dict({MAIN: unstacked(tree)})
    if isinstance(tree, Mapping) and not isinstance(tree, xarray.DataTree):
        return xarray.DataTree.from_dict(dict(tree))
    if not isinstance(tree, xarray.DataTree):
        raise TypeError(
            f"variables of type {type(tree).__name__}: give a DataTree with a group {MAIN!r}, or a Dataset."
        )
    return tree


def unstacked[T](array: T) -> T:
    """What `az.extract` stacked along `sample`, with the axes chain and draw again.

    Args:
        array: a DataArray or a Dataset; anything else, and what is not stacked, is returned as it is.

    >>> import arviz_base, numpy as np
    >>> tree = arviz_base.from_dict({"posterior": {"mu": np.ones((4, 250))}})
    >>> unstacked(arviz_base.extract(tree)).shape
    (4, 250)
    """
    indexes: Any = getattr(array, "indexes", {})
    axis = next((d for d, one in indexes.items() if set(AXES) <= set(one.names)), None)
    if axis is None or axis in AXES:
        return array
    found = array.unstack(next(iter(array[axis].dims)))  # type: ignore[index]
    if found.sizes["chain"] * found.sizes["draw"] != len(indexes[axis]):
        raise ValueError(
            f"{len(indexes[axis])} stacked draws do not fill {found.sizes['chain']} chains of "
            f"{found.sizes['draw']}: extract all draws of every chain, without num_samples."
        )
    return found


def in_chains(array: Any, what: str) -> Any:
    """A DataArray or a Dataset with the axes (chain, draw, ...), or a refusal that says what to do.

    Args:
        array: labelled, with these axes in any order, or as `az.extract` stacks them.
        what: what it is called in the message.
    """
    found = unstacked(array)
    missing = [axis for axis in AXES if axis not in found.dims]
    if missing:
        raise ValueError(
            f"{what} has the axes ({', '.join(map(str, found.dims))}) and no {' and no '.join(missing)}: "
            f"give (chain, draw, ...). {KEEP}"
        )
    return found.transpose(*AXES, ...)


def is_labelled(array: object) -> bool:
    """Whether it is of xarray, with axes that have names."""
    return hasattr(array, "dims") and hasattr(array, "coords")


def _random(dataset: "xarray.Dataset") -> list[str]:
    """The variables of a group that have a value for each draw."""
    return [str(name) for name, one in dataset.data_vars.items() if set(AXES) <= set(one.dims)]


def labels(name: str, array: "xarray.DataArray") -> list[str]:
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
    return values.reshape(*values.shape[:2], -1), labels(name, array)


def read(array: Any) -> np.ndarray:
    """The numbers of an array, computed in this thread if it is dask's.

    A worker of a cluster that asked the cluster for them would wait for itself.
    """
    if hasattr(array, "compute"):
        array = array.compute(scheduler="synchronous")
    return np.asarray(array)


def shape_of(names: Sequence[str]) -> tuple[int, ...]:
    """The shape of the array whose elements have these names, in order.

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
    """Values by name, each of which is read when it is first asked for.

    It is what an integrand such as `lambda d: d["mu"] / d["tau"]` is given for each draw.

    Args:
        held: what has been read.
        names: of all that there is; those of `held` by default.
        read: gives a value that is not held; None if there are no others.

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
        self.held, self.names, self.read = held, names or tuple(held), read
        self.asked = False  # for anything by name, also for what there is not

    def __getitem__(self, name: object) -> Any:
        if not isinstance(name, str):
            raise TypeError(
                f"[{name!r}] of variables by name: give a name, such as {some_of(self.names)}."
            )
        self.asked = True
        if name not in self.held:
            found = None if self.read is None else self.read(name)
            if found is None:
                raise KeyError(
                    f"no variable is called {name!r}: there are {some_of(self.names)}. Use one of these."
                )
            self.held[name] = found
        return self.held[name]

    def __iter__(self) -> Iterator[str]:
        self.asked = True
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def mapped(self, change: Callable[[Any], Any]) -> "ByName":
        """The same names with changed values, computed when they are asked for."""
        return ByName({}, self.names, lambda name: change(self[name]))
