"""Sampling by NUTS, and the cache of what was sampled.

All replicates run side by side as the chains of one vectorised call. Each chain has its own key, its
own start and its own warm-up, so that four of them are what four chains of a call by themselves would
be, and no two replicates share anything.
"""

import time
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from numpyro.infer import MCMC, NUTS

from .._data import folder as data_folder
from ._density import Density, Parameters, check, columns_of, density, first, rows
from ._model import Model
from ._registry import MODELS

CHAINS, DRAWS, WARMUP = 4, 250, 1000
LONG_DRAWS = 5000
KEYS = {"replicates": 1, "long": 2}


class Chains(NamedTuple):
    """What a sampler leaves.

    Attributes:
        draws: unconstrained, shape (chain, draw, dim).
        scores: of the same shape.
        names: of the columns of `draws`.
        values: the constrained parameters that posteriordb reports, (chain, draw, k).
        value_names: of the columns of `values`.
        diverging: whether the transition to a draw diverged, (chain, draw).
        seconds: CPU seconds of the call.
    """

    draws: np.ndarray
    scores: np.ndarray
    names: np.ndarray
    values: np.ndarray
    value_names: np.ndarray
    diverging: np.ndarray
    seconds: np.ndarray


def sample(model: Model, folder: Path, key: int, chains: int, draws: int) -> Chains:
    """Run NUTS in float64 with NumPyro's settings; the scores are those that it computed anyway."""
    _, found = sampled(model, folder, key, chains, draws, WARMUP, keep=False)
    return found


def sampled(
    model: Model, folder: Path, key: int, chains: int, draws: int, warmup: int, keep: bool
) -> tuple[Chains | None, Chains]:
    """The warm-up of NUTS, if it is kept, and the draws of the same chains."""
    start = time.process_time()
    with jax.enable_x64(True):
        starting, moving = jax.random.split(jax.random.key(key))
        target = density(model, folder, jax.random.split(starting, chains))
        mcmc, fields = nuts(target, chains, draws, warmup), ("z_grad", "diverging")
        settings = {"init_params": target.start, "extra_fields": fields}
        early = None
        if keep:
            mcmc.warmup(moving, collect_warmup=True, **settings)
            kept = (mcmc.get_samples(), mcmc.get_extra_fields())
            early = _chains(model, folder, target, *kept, chains, np.array(0.0))
            mcmc.run(mcmc.post_warmup_state.rng_key, extra_fields=fields)
        else:
            mcmc.run(moving, **settings)
        found = (mcmc.get_samples(), mcmc.get_extra_fields())
        seconds = np.array(time.process_time() - start)
        return early, _chains(model, folder, target, *found, chains, seconds)


def _chains(
    model: Model,
    folder: Path,
    target: Density,
    z: Parameters,
    extra: dict,
    chains: int,
    seconds: np.ndarray,
) -> Chains:
    named = jax.jit(jax.vmap(target.constrain))(z)
    values = dict(zip(columns_of(first(named)), rows(named).T, strict=True))
    wanted = np.load(folder / model.posterior / "draws.npz")["names"]
    return Chains(
        rows(z).reshape(chains, -1, rows(z).shape[1]),
        -rows(extra["z_grad"]).reshape(chains, -1, rows(z).shape[1]),
        np.array(columns_of(first(z))),
        np.stack([values[name] for name in wanted], axis=1).reshape(chains, -1, len(wanted)),
        wanted,
        np.asarray(extra["diverging"]).reshape(chains, -1),
        seconds,
    )


def nuts(target: Density, chains: int, draws: int, warmup: int) -> MCMC:
    """NUTS with NumPyro's settings, for unconstrained draws of chains side by side."""
    return MCMC(
        NUTS(potential_fn=target.potential),
        num_warmup=warmup,
        num_samples=draws,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )


def cached(model: Model, folder: Path, cache: Path, kind: str, replicates: int) -> Chains:
    """The chains of a model from the cache, sampled first if they are not there.

    Args:
        model: what to sample.
        folder: of posteriordb.
        cache: where the chains are kept, a file for each model and kind.
        kind: "replicates", of 4 x 250 draws each, or "long", 4 x 5000 draws.
        replicates: how many.
    """
    long = kind == "long"
    chains = CHAINS if long else CHAINS * replicates
    path = cache / f"{model.posterior}_{kind}{'' if long else f'_{replicates}'}.npz"
    if not path.exists():
        store(path, sample(model, folder, KEYS[kind], chains, LONG_DRAWS if long else DRAWS))
    return stored(path)


def store(path: Path, chains: Chains) -> None:
    """Keep chains in a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, **chains._asdict())
    partial.rename(path)


def stored(path: Path) -> Chains:
    """Read chains from a file."""
    with np.load(path) as arrays:
        return Chains(**{field: arrays[field] for field in Chains._fields})


def measure(name: str, replicates: int, cache: str) -> list[dict]:
    """Check a model, refuse it if it is another, and sample what is not in the cache."""
    model, folder = MODELS[name], data_folder()
    difference = check(model, folder)
    if not difference <= model.tolerance:
        raise ValueError(
            f"{name} is not posteriordb's: its gradient or its constrained parameters differ by "
            f"{difference:.1e}. Compare priors, likelihood and transforms with the Stan program."
        )
    for kind in KEYS:
        cached(model, folder, Path(cache), kind, replicates)
    return [{"model": name, "difference": difference}]
