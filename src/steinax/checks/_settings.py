"""What nothing may change: the input, the settings of jax and NumPy, and random number generators."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from ._check import expect


@contextmanager
def nothing_changes() -> Iterator[None]:
    """Raise if the body changes a setting of jax or NumPy, or a global random number generator."""
    before = _settings()
    yield
    after = _settings()
    changed = sorted(name for name in before if before[name] != after.get(name))
    expect(not changed, f"it changed the global {', '.join(changed)}")


def _settings() -> dict[str, Any]:
    random = np.random.get_state(legacy=True)
    return {
        **dict(jax.config.values),
        "jax_enable_x64": jax.config.jax_enable_x64,  # of this thread
        "numpy.geterr": np.geterr(),
        "numpy.printoptions": str(np.get_printoptions()),
        "numpy.random": (random[1].tobytes(), *random[2:]),  # type: ignore[index,union-attr]
        "warnings.filters": list(warnings.filters),
    }


def unmodified(call: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """The result of a call on copies that can be written to, which it must leave as they were."""
    given = [np.array(array) for array in arrays]
    result = call(*given)
    same = all(np.array_equal(one, other) for one, other in zip(given, arrays, strict=True))
    expect(same, "it wrote into the arrays that it was given")
    return result


def layouts(*arrays: np.ndarray) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The same arrays read-only, in Fortran order, and as a view with steps."""
    frozen = [np.array(array) for array in arrays]
    for array in frozen:
        array.setflags(write=False)
    yield "read-only", frozen
    yield "Fortran-ordered", [np.asfortranarray(array) for array in arrays]
    yield "strided", [np.repeat(array, 2, axis=0)[::2] for array in arrays]


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of a tree."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(one: Any, other: Any) -> bool:
    """Whether two trees hold the same arrays, bit by bit."""
    pairs = list(zip(leaves(one), leaves(other), strict=True))
    return all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs
    )


@contextmanager
def stirred() -> Iterator[None]:
    """A scope with NumPy's global generator in another state, put back afterwards."""
    state = np.random.get_state()
    np.random.seed(12345)
    try:
        yield
    finally:
        np.random.set_state(state)
