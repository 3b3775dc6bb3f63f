"""Draws in pytrees: their columns and column names, and functions evaluated at every draw."""

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._numerics import in_double, to_numpy
from .._types import PyTree
from ..data import as_reals, element

if TYPE_CHECKING:
    import xarray

MEMORY = 2**28  # approximate bytes of the intermediate results of one batch of draws


def leaves(tree: PyTree, what: str) -> dict[str, np.ndarray]:
    """Collect the arrays of a tree by name, each (chain, draw, ...), in the order of `ravel_pytree`."""
    pairs, _ = jax.tree.flatten_with_path(tree)
    arrays = {_name(path): as_reals(leaf, what) for path, leaf in pairs}
    shapes = {array.shape[:2] for array in arrays.values()}
    if len(shapes) != 1 or any(array.ndim < 2 for array in arrays.values()):
        listing = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"{what} have shapes that do not all start with the same (chain, draw): {listing or 'none'}. "
            "Give each as (chain, draw, ...); for one chain add an axis: array[None]."
        )
    return arrays


def flat_columns(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Concatenate all numbers of a draw: (chain, draw, dim)."""
    return np.concatenate(
        [np.reshape(array, (*array.shape[:2], -1)) for array in arrays.values()], axis=-1
    ).astype(np.float64)


def from_columns(columns: np.ndarray, like: PyTree) -> PyTree:
    """Undo `flat_columns`: points (chain, draw, dim) as a pytree like that of the draws."""
    arrays, tree = jax.tree.flatten(like)
    shapes = [np.shape(array)[2:] for array in arrays]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    pieces = np.split(columns, ends, axis=-1)
    pairs = zip(pieces, shapes, strict=True)
    return tree.unflatten([piece.reshape(*columns.shape[:2], *shape) for piece, shape in pairs])


def column_names(
    position: Mapping[str, np.ndarray], variables: Mapping[str, Any], known: bool = True
) -> list[str]:
    """Name each column, never after a variable with other values.

    Args:
        position: unconstrained draws, by name.
        variables: the quantities of the model, by name.
        known: whether a name that is not a variable may be kept.
    """
    names = []
    for name, array in position.items():
        kept = np.array_equal(array, variables[name]) if name in variables else known
        base = name if kept else f"{name}_free__"
        names += [element(base, index) for index in np.ndindex(*array.shape[2:])]
    return names


def over_draws(fn: Callable[[PyTree], PyTree], tree: PyTree) -> PyTree:
    """Evaluate `fn` at each draw of a tree with leaves (chain, draw, ...), compiled, in float64."""
    flat, chains = _flat(tree)

    first = jax.tree.map(lambda leaf: leaf[0], flat)
    values = in_double(lambda at: to_numpy(compiled_over_draws(at, flat)(flat)), fn, first)
    return jax.tree.map(lambda leaf: leaf.reshape(*chains, *leaf.shape[1:]), values)


def compiled_over_draws(fn: Callable[[PyTree], PyTree], flat: PyTree) -> Callable[[PyTree], PyTree]:
    """Compile `fn` over leaves (n, ...), in batches that fit in memory.

    It is compiled for every call: functions often read data that are changed later, and a function
    compiled before would use the old data.
    """
    count = jax.tree.leaves(flat)[0].shape[0]
    size = max(1, min(count, MEMORY // max(1, _bytes(fn, jax.tree.map(lambda a: a[0], flat)))))
    return jax.jit(lambda draws: jax.lax.map(fn, draws, batch_size=size)).lower(flat).compile()


def dataset(
    groups: Mapping[str, Mapping[str, Any]],
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Any] | None,
) -> "xarray.DataTree":
    """Convert groups of arrays (chain, draw, ...) to a DataTree, with names and labels of their axes."""
    from arviz_base import from_dict

    names = {name for arrays in groups.values() for name in arrays}
    return from_dict(
        {group: dict(arrays) for group, arrays in groups.items()},
        sample_dims=["chain", "draw"],
        check_conventions=False,
        **axes_and_labels(dims, coords, names),
    )


def axes_and_labels(
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Any] | None,
    names: Collection[str],
) -> dict[str, Any]:
    """Return the arguments `dims` and `coords` as ArviZ takes them: dicts, and lists in `dims`.

    As in ArviZ, entries that no variable has are ignored, unless they look like a misspelt name.

    Args:
        dims: the names of the axes of each variable.
        coords: the labels along an axis.
        names: the variables.
    """
    dims = {
        name: [one] if isinstance(one, str) else list(one) for name, one in (dims or {}).items()
    }
    axes = {axis for named in dims.values() for axis in named}
    if twice := sorted(axes & set(names)):
        raise ValueError(f"{twice[0]!r} is a variable and an axis: give the axis another name.")
    for what, given, known in (("dims", dims, set(names)), ("coords", coords, axes)):
        for name in set(given or ()) - known:
            if meant := get_close_matches(name, known, 1):
                raise ValueError(f"`{what}` has an entry for {name!r}: write {meant[0]!r}.")
    return {
        "dims": dims or None,
        "coords": None if coords is None else dict(coords),
    }


def constrained_draws(constrain: Callable[[PyTree], Any], tree: PyTree) -> dict[str, np.ndarray]:
    """Evaluate the user's `constrain` at each draw: a dict of arrays (chain, draw, ...)."""

    def checked(position: PyTree) -> dict[str, Any]:
        values = constrain(position)
        if not isinstance(values, Mapping) or not values:
            what = "an array" if hasattr(values, "shape") else f"a {type(values).__name__}"
            raise ValueError(
                f"`constrain` gives {what}: let it take one position and return a "
                'dict of named quantities, such as {"tau": jnp.exp(position["log_tau"])}.'
            )
        return dict(values)

    try:
        return over_draws(checked, tree)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            "`constrain` is not made of jax operations, so it cannot run over all draws at once: "
            "write it with jax.numpy (jnp.exp for np.exp, jnp.where for if)."
        ) from error


def quantities(
    constrain: Callable[[PyTree], Any] | None, draws: PyTree, position: Mapping[str, np.ndarray]
) -> Mapping[str, np.ndarray]:
    """Collect the quantities to request by name: those of `constrain`, or the entries of a dict of draws.

    Args:
        constrain: as in `constrained_draws`.
        draws: with leaves (chain, draw, ...).
        position: the leaves of `draws`, by name.
    """
    if constrain is not None:
        return constrained_draws(constrain, draws)
    return position if isinstance(draws, Mapping) else {}


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".") or "x"


def _flat(tree: PyTree) -> tuple[PyTree, tuple[int, int]]:
    chains = np.shape(jax.tree.leaves(tree)[0])[:2]

    def flatten(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf, np.float64)
        return array.reshape(-1, *array.shape[2:])

    return jax.tree.map(flatten, tree), (chains[0], chains[1])


def _bytes(fn: Callable[[PyTree], PyTree], draw: PyTree) -> int:
    """Count the bytes of the intermediate results for one draw, if none is reused."""
    jaxpr = jax.make_jaxpr(fn)(draw).jaxpr
    results = [variable.aval for equation in jaxpr.eqns for variable in equation.outvars]
    return sum(getattr(aval, "size", 1) * 8 for aval in results)
