"""A model's log density on the unconstrained space, and the proof that it is the right one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike
from numpyro.infer.util import initialize_model

from ._model import Model

Parameters = dict[str, jax.Array]


class Density(NamedTuple):
    """A model with its data.

    Attributes:
        potential: minus the log density of unconstrained parameters, Jacobian included.
        constrain: from unconstrained parameters to all that the model names.
        start: valid unconstrained parameters, one set for each key.
    """

    potential: Callable[[Parameters], jax.Array]
    constrain: Callable[[Parameters], Parameters]
    start: Parameters


def density(model: Model, folder: Path, keys: jax.Array) -> Density:
    """The density of a model with the data of `folder`, and a start for each key."""
    given = json.loads((folder / model.posterior / "data.json").read_text())
    data = {name: np.asarray(values, float) for name, values in given.items()}
    info = initialize_model(keys, model.program, init_strategy=model.start, model_args=(data,))
    return Density(info.potential_fn, info.postprocess_fn, info.param_info.z)


def check(model: Model, folder: Path, draws: int = 1000) -> float:
    """How far the model is from posteriordb's, at posteriordb's draws; it has to be rounding error.

    The largest difference between the model's gradient and the stored scores, and between its
    constrained parameters and the stored draws, in units of each column's root mean square. It is
    zero if likelihood, priors and transforms are the same, the tolerance of Stan's solvers aside.
    """
    with np.load(folder / model.posterior / "scores.npz") as stored:
        u, score = stored["u"][:draws], stored["score"][:draws]
        unconstrained = [str(name).split(".")[0] for name in stored["unc_names"]]
    with np.load(folder / model.posterior / "draws.npz") as stored:
        values = stored["draws"].reshape(-1, stored["draws"].shape[-1])[:draws]
        names = stored["names"].tolist()
    with jax.enable_x64(True):
        target = density(model, folder, jax.random.split(jax.random.key(0), 1))
        z = split(u, unconstrained, target.start)
        theirs = split(score, unconstrained, target.start)
        gradient = jax.jit(jax.vmap(jax.grad(target.potential)))(z)
        named = jax.jit(jax.vmap(target.constrain))(z)
        far = [distance(-gradient[name], theirs[name]) for name in theirs]
        mine = dict(zip(columns_of(first(named)), rows(named).T, strict=True))
        far += [distance(mine[name], values[:, i]) for i, name in enumerate(names)]
    return max(far)


def split(columns: np.ndarray, names: list[str], like: Parameters) -> dict[str, np.ndarray]:
    """The columns of an array by the parameter they belong to, each shaped as in `like`."""
    found = {}
    for name, values in like.items():
        members = columns[:, [i for i, one in enumerate(names) if one == name]]
        found[name] = members.reshape(len(columns), *values.shape[1:])
    return found


def distance(mine: ArrayLike, theirs: np.ndarray) -> float:
    """The largest difference over draws, in units of the root mean square of each column."""
    difference = np.abs(np.asarray(mine) - theirs)
    return float(np.max(difference / np.sqrt(np.mean(theirs**2, axis=0))))


def rows(tree: Parameters) -> np.ndarray:
    """Parameters of many draws, (draw, ...) each, as one array (draw, column)."""
    return np.asarray(jax.vmap(lambda one: ravel_pytree(one)[0])(tree))


def first(tree: Parameters) -> Parameters:
    """The parameters of the first draw."""
    return {name: values[0] for name, values in tree.items()}


def columns_of(one: Parameters) -> list[str]:
    """The names of the columns of `rows`, numbered from one as posteriordb does."""
    names: list[str] = []
    for name in sorted(one):
        size = np.size(one[name])
        names += [name] if np.ndim(one[name]) == 0 else [f"{name}[{i + 1}]" for i in range(size)]
    return names
