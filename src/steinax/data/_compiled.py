"""Integrands of streams: functions that are compiled once, and the variables that they use."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ._integrands import IntegrandSpec, named_arguments, named_integrands
from ._variables import ByName, Variables, read

LEAST = 128  # least number of draws of a compiled call; fewer are padded


def filled(values: np.ndarray, rows: int) -> np.ndarray:
    """Pad an array to a number of rows by repeating its last row.

    >>> filled(np.array([[1.0], [2.0]]), 4).tolist()
    [[1.0], [2.0], [2.0], [2.0]]
    """
    short = rows - len(values)
    return np.concatenate([values, values[-1:].repeat(short, 0)]) if short > 0 else values


def rounded(n: int) -> int:
    """Round up to a power of two, at least 128, so that few sizes are compiled.

    >>> rounded(3), rounded(128), rounded(129)
    (128, 128, 256)
    """
    return max(LEAST, 1 << (n - 1).bit_length())


class Compiled:
    """An integrand of one draw with its compiled version for many draws; it can be pickled.

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

    def over(self, draws: np.ndarray | dict[str, np.ndarray] | ByName) -> np.ndarray:
        """Evaluate the integrand on draws (n, dim), or on variables (n, ...) by name."""
        n = len(jax.tree.leaves(draws)[0])
        padded = jax.tree.map(lambda values: filled(values, rounded(n)), draws)
        return np.asarray(self._mapped(padded))[:n]

    @cached_property
    def _mapped(self) -> Callable:
        """The compiled function of many draws."""
        f = self.__wrapped__
        return jax.jit(jax.vmap(lambda row: f(**row) if isinstance(row, dict) else f(row)))


def compiled[F](f: F) -> F:
    """Compile every function among integrands; names and arrays are returned unchanged."""
    if isinstance(f, Mapping):
        return {name: compiled(g) for name, g in f.items()}  # type: ignore[return-value]
    plain = callable(f) and not isinstance(f, Compiled)
    return Compiled(f) if plain else f  # type: ignore[return-value]


def variables_asked(f: IntegrandSpec, variables: Variables | None) -> dict[str, Any]:
    """Read the model's variables that integrands use, by name: their values and labels.

    >>> import numpy as np, xarray
    >>> tau = xarray.Dataset({"tau": (("chain", "draw"), np.ones((1, 2)))})
    >>> variables_asked(lambda tau, x: tau * x, Variables(tau))
    {'tau': (array([[[1.],
            [1.]]]), ['tau'])}
    """
    if variables is None:
        return {}
    asked: list[str] = []
    for integrand in named_integrands(f).values():
        asked += (
            [integrand]
            if isinstance(integrand, str)
            else _asked(integrand, variables)
            if callable(integrand)
            else []
        )
    read_variables = {}
    for name in asked:
        try:
            read_variables[name] = variables.labelled(name)
        except KeyError:  # no such element: the error is raised at the evaluation
            read_variables[name] = None
    return {name: held for name, held in read_variables.items() if held is not None}


def _asked(f: Callable, variables: Variables) -> list[str]:
    """List a function's arguments, and all of the posterior if it accesses variables by name."""

    def first(name: str) -> np.ndarray:
        return read(variables[name][0, 0]) if name in variables else np.ones(1)

    probe = ByName({}, variables.names, first)
    with suppress(Exception), np.errstate(all="ignore"):  # most functions take another argument
        f(probe)
    return list(
        {
            **named_arguments(f),
            **dict.fromkeys(variables.names if probe.asked else ()),
            **probe.held,
        }
    )
