"""PyMC's transforms and gradients as functions of all draws at once."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import numpy as np

from .._precision import precision
from .._require import require


class Functions(NamedTuple):
    """Of arrays (n, ...), one for each variable, in the model's order."""

    unconstrain: Callable[..., list[np.ndarray]]
    density: Callable[..., list[np.ndarray]]  # log density (n,) and score (n, dim)


_KEPT: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Functions]] = WeakKeyDictionary()


def compiled(model: Any, backend: str) -> Functions:
    """The functions of a model, compiled once; a model that was changed since is compiled anew.

    PyTensor's own functions read data containers, which are shared variables, at every call; jax has
    them as constants.
    """
    parts = (backend, *model.basic_RVs, *model.value_vars, *model.potentials)
    if backend == "jax":
        parts += tuple(one.get_value(borrow=True) for one in model.data_vars)
    kept = _KEPT.get(model)
    if kept is None or list(map(id, kept[0])) != list(map(id, parts)):
        over_draws = BACKENDS[backend]
        _KEPT[model] = kept = (parts, Functions(*(over_draws(*one) for one in _graphs(model))))
    return kept[1]


def _graphs(model: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs and outputs at one point: of the transforms, and of the density."""
    from pytensor.graph.replace import clone_replace

    points = {rv: rv.type(rv.name) for rv in model.free_RVs}
    values = []
    for rv, point in points.items():
        transform = model.rvs_to_transforms[rv]
        values.append(point if transform is None else transform.forward(point, *rv.owner.inputs))
    # Bounds may depend on other variables of the model, which are at their points as well.
    yield list(points.values()), clone_replace(values, replace=points, rebuild_strict=False)
    yield model.value_vars, [model.logp(), model.dlogp()]


def _by_numpy(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    from pytensor.compile.mode import Mode

    # all rewrites that keep digits, and none that is made for a compiler
    mode = Mode(linker="py", optimizer="fast_run").excluding("fusion", "inplace")
    return _by_pytensor(inputs, outputs, mode)


def _by_numba(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    return _by_pytensor(inputs, outputs, "NUMBA")


def _by_pytensor(
    inputs: list[Any], outputs: list[Any], mode: Any
) -> Callable[..., list[np.ndarray]]:
    from pytensor.graph.replace import vectorize_graph

    pytensor = require("pytensor", extra="pymc")
    many = [  # nameless, because PyTensor refuses some names, such as "half"
        pytensor.tensor.tensor(dtype=one.dtype, shape=(None, *one.type.shape)) for one in inputs
    ]
    batched = vectorize_graph(outputs, dict(zip(inputs, many, strict=True)))
    return pytensor.function(many, batched, mode=mode, on_unused_input="ignore")


def _by_jax(inputs: list[Any], outputs: list[Any]) -> Callable[..., list[np.ndarray]]:
    jax.devices()  # PyMC's module asks for a hundred of them, which then has no effect
    from pymc.sampling.jax import get_jaxified_graph

    with precision(np.float64):  # constants of the graph become arrays of jax here
        one = get_jaxified_graph(inputs=inputs, outputs=outputs)
    many = jax.jit(jax.vmap(one))

    def evaluate(*points: np.ndarray) -> list[np.ndarray]:
        with precision(np.float64):
            return [np.asarray(value) for value in many(*points)]

    return evaluate


BACKENDS = {"numpy": _by_numpy, "numba": _by_numba, "jax": _by_jax}
