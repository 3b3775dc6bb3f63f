"""Functions that are given one block of draws after the other, compiled for few sizes of them."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import numpy as np

LEAST = 128  # draws: fewer are filled up to this many


def filled(values: np.ndarray, rows: int) -> np.ndarray:
    """An array with its last row repeated until there are so many.

    >>> filled(np.array([[1.0], [2.0]]), 4).tolist()
    [[1.0], [2.0], [2.0], [2.0]]
    """
    short = rows - len(values)
    return np.concatenate([values, values[-1:].repeat(short, 0)]) if short > 0 else values


def rounded(n: int) -> int:
    """The least power of two that is as large, and at least 128: few sizes to compile for.

    >>> rounded(3), rounded(128), rounded(129)
    (128, 128, 256)
    """
    return max(LEAST, 1 << (n - 1).bit_length())


class Compiled:
    """An integrand of one draw with what jax makes of it for many; it can be sent away.

    Args:
        f: a function of a draw, or of variables.

    >>> with jax.enable_x64():
    ...     Compiled(lambda x: x[0] + 1).over(np.zeros((3, 2)))
    array([1., 1., 1.])
    """

    def __init__(self, f: Callable):
        self.__wrapped__ = f  # where inspect looks for the names of arguments

    def __reduce__(self) -> tuple[type, tuple[Callable]]:
        return Compiled, (self.__wrapped__,)

    def __call__(self, *draw: Any, **variables: Any) -> Any:
        return self.__wrapped__(*draw, **variables)

    def over(self, draws: np.ndarray | dict[str, np.ndarray]) -> np.ndarray:
        """The values on draws (n, dim), or on variables (n, ...) by name."""
        n = len(jax.tree.leaves(draws)[0])
        many = jax.tree.map(lambda values: filled(values, rounded(n)), draws)
        return np.asarray(self._mapped(many))[:n]

    @cached_property
    def _mapped(self) -> Callable:
        f = self.__wrapped__
        return jax.jit(jax.vmap(lambda row: f(**row) if isinstance(row, dict) else f(row)))


def compiled[F](f: F) -> F:
    """Integrands of which every function is compiled; names and arrays stay as they are."""
    if isinstance(f, Mapping):
        return {name: compiled(one) for name, one in f.items()}  # type: ignore[return-value]
    plain = callable(f) and not isinstance(f, Compiled)
    return Compiled(f) if plain else f  # type: ignore[return-value]
