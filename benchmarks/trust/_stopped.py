r"""Chains to stop: NUTS on models of posteriordb, a banana driven by AR(1) chains, and Student's t.

A target gives a replicate's draws, scores and integrands by its number. NUTS runs 200 chains of 2,500 draws
for a model; a replicate is a stretch of 250 draws of four of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._command import cache_folder
from ..posteriors._data import folder
from ..posteriors.chains._registry import MODELS
from ..posteriors.chains._run import sampled, store, stored
from ..problems._student import moment

CHAINS, WARMUP, KEY = 4, 500, 11
GROUPS, STRETCHES, LENGTH = 50, 10, 250  # 500 replicates
MOST = 4  # parameters of a model


class Run(NamedTuple):
    """The draws of a replicate.

    Attributes:
        draws: (chain, draw, dim).
        scores: of the same shape.
        f: integrands (chain, draw) by name.
    """

    draws: np.ndarray
    scores: np.ndarray
    f: dict[str, np.ndarray]


class Target(NamedTuple):
    """What is sampled.

    Attributes:
        run: makes a replicate by its number.
        truth: the expectations; None if they are the mean of all replicates.
    """

    run: Callable[[int], Run]
    truth: np.ndarray | None = None


def autoregressive(seed: list[int], rho: float, length: int) -> np.ndarray:
    """Four stationary chains in two dimensions."""
    z = np.random.default_rng(seed).normal(size=(CHAINS, length, 2))
    for i in range(1, length):
        z[:, i] = rho * z[:, i - 1] + np.sqrt(1 - rho**2) * z[:, i]
    return z


def banana(rho: float, length: int = LENGTH) -> Target:
    """AR(1) chains, bent."""

    def run(number: int) -> Run:
        z = autoregressive([number, 1], rho, length)
        x = np.stack([z[..., 0], z[..., 1] + z[..., 0] ** 2 - 1], axis=-1)
        score = np.stack([-z[..., 0] + 2 * z[..., 1] * z[..., 0], -z[..., 1]], axis=-1)
        return Run(x, score, {"x": x[..., 0], "y": x[..., 1], "y^2": x[..., 1] ** 2})

    return Target(run, np.array([0.0, 0.0, 3.0]))


def student(freedom: float, rho: float) -> Target:
    """Student's t in two dimensions: AR(1) chains over independent scales."""

    def run(number: int) -> Run:
        z = autoregressive([number, 2], rho, LENGTH)
        scale = np.random.default_rng([number, 3]).chisquare(freedom, size=(*z.shape[:2], 1))
        x = z / np.sqrt(scale / freedom)
        score = -(freedom + 2) * x / (freedom + (x**2).sum(axis=-1, keepdims=True))
        size = np.abs(x[..., 0])
        return Run(x, score, {"x": x[..., 0], "|x|": size, "x^2": size**2})

    return Target(run, np.array([0.0, moment(freedom, 1.0), moment(freedom, 2.0)]))


def posterior(name: str) -> Target:
    """Stretches of long chains of NUTS, and the first parameters of the model."""

    def run(number: int) -> Run:
        path = cache_folder("stopping") / f"{name}_{CHAINS * GROUPS}x{STRETCHES * LENGTH}.npz"
        if not path.exists():
            chains, draws = CHAINS * GROUPS, STRETCHES * LENGTH
            _, found = sampled(MODELS[name], folder(), KEY, chains, draws, WARMUP, keep=False)
            store(path, found)
        stretch, group = divmod(number, GROUPS)
        rows = slice(CHAINS * group, CHAINS * (group + 1))
        part = np.s_[rows, LENGTH * stretch : LENGTH * (stretch + 1)]
        if name not in _held or _held[name][0] != path:
            _held.clear()
            _held[name] = (path, stored(path))
        found = _held[name][1]
        names = found.value_names.tolist()[:MOST]
        f = {one: found.values[part][..., i] for i, one in enumerate(names)}
        return Run(found.draws[part], found.scores[part], f)

    return Target(run)


_held: dict = {}  # the chains of one model
POSTERIORS = (
    "eight_schools_noncentered",
    "arK",
    "garch11",
    "kidscore_interaction",
    "logmesquite_logvas",
    "blr",
    "gp_regr",
)
TARGETS: dict[str, Target] = {
    "banana, AR(1) 0.5": banana(0.5),
    "banana, AR(1) 0.9": banana(0.9, 1000),
    "t(5), AR(1) 0.3": student(5.0, 0.3),
    **{name: posterior(name) for name in POSTERIORS},
}
