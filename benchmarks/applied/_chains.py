"""Chains of a target by NumPyro's NUTS, with their warm-up, in files: a run that is stopped goes on there."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS

from .. import _store
from ._models import Target

CHAINS, WARMUP, DRAWS = 4, 500, 250
TOGETHER = 16  # chains that are sampled at once
SPREAD = 0.3  # of the starts


class Replicate(NamedTuple):
    """Draws and scores of 4 chains, (chain, draw, dim), of their warm-up too, and the CPU seconds."""

    draws: np.ndarray
    scores: np.ndarray
    warmup: np.ndarray
    warmup_scores: np.ndarray
    seconds: np.ndarray


def names_of(target: Target) -> list[str]:
    """The names of the columns, in the order of `ravel_pytree`."""
    names = []
    for name in sorted(target.start):
        size = np.size(target.start[name])
        scalar = np.ndim(target.start[name]) == 0
        names += [name] if scalar else [f"{name}[{i}]" for i in range(size)]
    return names


def replicates(name: str, target: Target, count: int, cache: Path) -> list[Replicate]:
    """The replicates of a target: those in the cache, and others that are sampled."""
    found: list[Replicate] = []
    batch = 0
    while len(found) < count:
        path = cache / f"{name.replace(', ', '_').replace(' ', '_')}_{batch}.npz"
        if not path.exists():
            _store.save(path, {"target": name}, sampled(target, batch))
        arrays = _store.read(path)[1]
        for i in range(TOGETHER // CHAINS):
            rows = slice(CHAINS * i, CHAINS * (i + 1))
            chains = (arrays[field][rows] for field in Replicate._fields[:-1])
            found.append(Replicate(*chains, arrays["seconds"] * CHAINS / TOGETHER))
        batch += 1
    return found[:count]


def sampled(target: Target, seed: int) -> dict[str, np.ndarray]:
    """Sample chains side by side, and keep the warm-up and the gradients that each transition took."""
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, target.start))

    def potential(x: Any) -> Any:
        return -target.log_density(unravel(x))

    start, run = jax.random.split(jax.random.key(seed))
    starts = flat + SPREAD * jax.random.normal(start, (TOGETHER, len(flat)))
    mcmc = MCMC(
        NUTS(potential_fn=potential),
        num_warmup=WARMUP,
        num_samples=DRAWS,
        num_chains=TOGETHER,
        chain_method="vectorized",
        progress_bar=False,
    )
    began, fields = time.process_time(), ("z_grad", "num_steps")
    mcmc.warmup(run, init_params=starts, extra_fields=fields, collect_warmup=True)
    early, early_steps = _kept(mcmc), _steps(mcmc)
    mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=fields)
    late, seconds = _kept(mcmc), time.process_time() - began
    arrays = dict(zip(Replicate._fields, (*late, *early), strict=False))
    steps = {"steps": _steps(mcmc), "warmup_steps": early_steps}
    return arrays | steps | {"seconds": np.array(seconds)}


def _kept(mcmc: MCMC) -> tuple[np.ndarray, np.ndarray]:
    draws = np.asarray(mcmc.get_samples(group_by_chain=True))
    return draws, -np.asarray(mcmc.get_extra_fields(group_by_chain=True)["z_grad"])


def _steps(mcmc: MCMC) -> np.ndarray:
    return np.asarray(mcmc.get_extra_fields(group_by_chain=True)["num_steps"])
