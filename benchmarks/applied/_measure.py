"""Estimates of all replicates of a target, with and without the warm-up, and their scores."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import steinax as sx
from steinax.data import with_warmup

from .._warmup import first_finite
from ..posteriors._rows import count_choices
from ..posteriors._score import Trials, against_the_others, score
from ._chains import Replicate, names_of, replicates
from ._models import TARGETS, Target, dimension

KINDS = ("means", "sds", "predictions", "contrasts", "probabilities")


class Quantities:
    """The integrands of a target, by kind.

    Standard deviations are squares around a fixed centre; probabilities are those that the first of the
    other kinds are above their centres.

    Args:
        target: with its quantities.
        draws: from which the centres and scales are, (n, dim).
    """

    def __init__(self, target: Target, draws: np.ndarray):
        unravel = ravel_pytree(jax.tree.map(jnp.asarray, target.start))[1]

        self._evaluate = jax.jit(jax.vmap(lambda x: target.quantities(unravel(x))))
        found = {kind: np.asarray(each) for kind, each in self._evaluate(draws).items()}
        self.centre = {kind: each.mean(axis=0) for kind, each in found.items()}
        self.scale = {kind: each.std(axis=0) for kind, each in found.items()}

    def __call__(self, draws: np.ndarray) -> dict[str, np.ndarray]:
        """The values on draws (chain, draw, dim), by kind: (chain, draw, count)."""
        found = self._evaluate(draws.reshape(-1, draws.shape[-1]))
        values = {kind: np.asarray(each) for kind, each in found.items()}
        above = [(values[kind] > self.centre[kind])[:, :1] for kind in values]
        values["probabilities"] = np.concatenate(above, axis=1).astype(float)
        if "means" in values:
            values["sds"] = ((values["means"] - self.centre["means"]) / self.scale["means"]) ** 2
        shape = draws.shape[:2]
        return {kind: values[kind].reshape(*shape, -1) for kind in KINDS if kind in values}


def sample_of(
    quantities: Quantities, names: list[str], draws: np.ndarray, scores: np.ndarray
) -> sx.Sample:
    """Draws with their quantities as variables."""
    return sx.from_arrays(draws, scores, names, variables=quantities(draws))


def measure(name: str, count: int, cache: str, alone: bool = False) -> list[dict]:
    """The row of one target; `alone` to use no training points."""
    jax.config.update("jax_enable_x64", True)
    target = TARGETS[name]()
    runs = replicates(name, target, count, Path(cache))
    quantities = Quantities(
        target, np.concatenate([each.draws for each in runs]).reshape(-1, dimension(target))
    )
    found: dict[str, list[sx.Estimate]] = {"alone": [], "trained": []}
    seconds = []
    for each in runs:
        for kind, sample in _samples(quantities, names_of(target), each).items():
            if alone and kind == "trained":
                found[kind].append(found["alone"][-1])
                continue
            began = time.process_time()
            found[kind].append(sx.estimate(list(quantities(each.draws)), sample, audit="off"))
            seconds.append(time.process_time() - began)
    shapes = {kind: each.shape[-1] for kind, each in quantities(runs[0].draws[:, :2]).items()}
    edges = np.cumsum([0, *shapes.values()])
    groups = {kind: range(edges[i], edges[i + 1]) for i, kind in enumerate(shapes)}
    reference = against_the_others(found["trained"])
    row: dict[str, Any] = {
        "target": name,
        "dim": dimension(target),
        "replicates": count,
        "sampling": float(np.median([each.seconds for each in runs])),
        "seconds": float(np.median(seconds[-1 : 0 if alone else 2 : -2])),
        "rhat": float(max(np.max(sx.chains.split_rhat(each.draws)) for each in runs)),
    }
    for kind, estimates in found.items():
        value, mcse = (
            np.array([getattr(e, field) for e in estimates]) for field in ("value", "mcse")
        )
        trials = Trials(value, mcse, reference.plain, reference.reference, reference.reference_mcse)
        row[kind] = asdict(score(trials, estimates[0].names, groups))
        row[kind]["chosen"] = count_choices([list(each.chosen) for each in estimates])
    plain = reference.plain
    apart = reference.value.mean(axis=0) - plain.mean(axis=0)
    row["off_plain"] = float(np.sqrt(np.mean((apart / (plain.std(axis=0) / np.sqrt(count))) ** 2)))
    return [row]


def _samples(quantities: Quantities, names: list[str], run: Replicate) -> dict[str, sx.Sample]:
    """The draws alone, and with their warm-up as training points."""
    alone = sample_of(quantities, names, run.draws, run.scores)
    return {"alone": alone, "trained": with_its_warmup(quantities, names, run)}


def with_its_warmup(quantities: Quantities, names: list[str], run: Replicate) -> sx.Sample:
    """The draws, with the warm-up as training points."""
    first = first_finite(run.warmup, run.warmup_scores)
    warmup = sample_of(quantities, names, run.warmup[:, first:], run.warmup_scores[:, first:])
    return with_warmup(sample_of(quantities, names, run.draws, run.scores), warmup)
