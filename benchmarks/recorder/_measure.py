"""Gains of 4 x 25 draws with and without training points, and the time that recording takes."""

import time
from typing import Any

import jax
import numpy as np

import steinax as sx
from steinax.data import with_warmup

from .._warmup import first_finite
from ._models import MODELS, Model
from ._samplers import CHAINS, SAMPLERS, Draws, Sampler

WARMUP, GAP, DRAWS = 150, 5, 25  # the gap separates recorded states from draws
LONG = 1000  # draws of each chain of the reference
EVERY = (1, 8)
KINDS = ("alone", "leapfrog", "warm-up", "both")


def measure(model: str, sampler: str, replicates: int, repeats: int) -> list[dict]:
    """The row of one model and one sampler.

    Args:
        model: a name in `MODELS`.
        sampler: a name in `SAMPLERS`.
        replicates: samples of 4 x 25 draws.
        repeats: how often runs with and without a recorder are timed.
    """
    jax.config.update("jax_enable_x64", True)
    target, sign = MODELS[model](), -1.0 if sampler == "NumPyro" else 1.0

    def density(x: Any) -> Any:
        return sign * target.log_density(x)

    make = SAMPLERS[sampler]
    recorders = {every: sx.record(density, potential=sign < 0, every=every) for every in EVERY}
    recorded = make(recorders[8], WARMUP, GAP + DRAWS)
    truth = reference(target)
    row = {"model": model, "sampler": sampler, "dim": len(target.centre), "replicates": replicates}
    row |= gains(target, recorded, recorders[8], truth, replicates)
    plain = make(density, WARMUP, GAP + DRAWS)
    last = plain.warm_up(target.starts(0, CHAINS), 0)[0]
    timed = {"plain": plain, 1: make(recorders[1], WARMUP, GAP + DRAWS), 8: recorded}
    return [row | {"slowdown": slowdowns(timed, last, repeats)}]


def sample_of(target: Model, draws: Draws) -> sx.Sample:
    """Draws with their scores and the quantities that are wanted."""
    x = np.asarray(draws.x)
    each = jax.jit(jax.vmap(jax.vmap(target.constrain)))(x)
    variables = {name: np.asarray(each[name]) for name in target.wanted}
    return sx.from_arrays(x, np.asarray(draws.score), variables=variables)


def settled(draws: Draws) -> Draws:
    """The draws of a warm-up after the last one of any chain that is not finite."""
    first = first_finite(*draws)
    return Draws(*(np.asarray(each)[:, first:] for each in draws))


def reference(target: Model) -> sx.Estimate:
    """The estimate from a longer run, by BlackJAX, trained on its warm-up."""
    sampler = SAMPLERS["BlackJAX"](target.log_density, 2 * WARMUP, LONG)
    last, early = sampler.warm_up(target.starts(999, CHAINS), 999)
    sample = sample_of(target, sampler.draw(last))
    warm = sample_of(target, settled(early))
    return sx.estimate(list(target.wanted), with_warmup(sample, warm))


def gains(
    target: Model, sampler: Sampler, recorder: Any, truth: sx.Estimate, replicates: int
) -> dict[str, Any]:
    """The gain of each kind of estimate, geometric mean over quantities, and its calibration."""
    found: dict[str, list[sx.Estimate]] = {kind: [] for kind in KINDS}
    points = []
    for seed in range(1, replicates + 1):
        recorder.clear()
        last, early = sampler.warm_up(target.starts(seed, CHAINS), seed)
        states = recorder.sample()
        leapfrog = sample_of(target, Draws(states.draws, states.scores))
        draws = Draws(*(np.asarray(each)[:, GAP:] for each in sampler.draw(last)))
        alone = sample_of(target, draws)
        warm = with_warmup(alone, sample_of(target, settled(early)))
        points.append([leapfrog.size, sum(part.size for part in warm.training)])
        both = warm.with_training(*warm.training, leapfrog)
        given = (alone, alone.with_training(leapfrog), warm, both)
        for kind, sample in zip(KINDS, given, strict=True):
            found[kind].append(sx.estimate(list(target.wanted), sample, audit="off"))
    plain = np.array([each.plain_value for each in found["alone"]]) - truth.value
    row: dict[str, Any] = {"gain": {}, "calibration": {}}
    for kind, estimates in found.items():
        error = np.array([each.value for each in estimates]) - truth.value
        mcse = np.hypot([each.mcse for each in estimates], truth.mcse)
        ratio = np.mean(plain**2, axis=0) / np.mean(error**2, axis=0)
        row["gain"][kind] = float(np.exp(np.mean(np.log(ratio))))
        row["calibration"][kind] = float(np.sqrt(np.mean((error / mcse) ** 2)))
    recorded, warmed = np.median(points, axis=0).tolist()
    share = np.sqrt(np.mean((truth.mcse / error.std(axis=0)) ** 2)) if replicates > 1 else 0.0
    return row | {"leapfrog": recorded, "warm-up": warmed, "reference error": float(share)}


def slowdowns(timed: dict[Any, Sampler], last: Any, repeats: int) -> dict[str, float]:
    """Median ratios of CPU times, of runs with a recorder to plain ones of the same turn, less one."""
    seconds: dict[Any, list[float]] = {name: [] for name in timed}
    for turn in range(repeats + 1):
        for name, sampler in timed.items():
            start = time.process_time()
            sampler.draw(last)
            if turn:  # the first compiles
                seconds[name].append(time.process_time() - start)
    plain = np.array(seconds["plain"])
    return {str(every): float(np.median(np.array(seconds[every]) / plain)) - 1 for every in EVERY}
