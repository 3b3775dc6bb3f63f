"""Chains of the models by NumPyro's NUTS in float64, kept in a folder."""

from functools import partial
from pathlib import Path

import jax
import numpy as np
from numpyro.infer.util import constrain_fn, initialize_model

import steinax as sx

from .._store import read, save
from ..posteriors.chains._density import Density, rows
from ..posteriors.chains._run import CHAINS, WARMUP, nuts
from .models import LARGE, MODELS

LONGEST, RUNS = 5000, 4
LONG = 25_000  # draws of each chain of a model that is large


def sampled(name: str, runs: int = RUNS, longest: int = LONGEST) -> dict[str, np.ndarray]:
    """Draws and scores, (run, chain, draw, dim), and the parameters as the model has them, (..., k)."""
    chains = CHAINS * runs
    with jax.enable_x64(True):
        program, keys = (MODELS | LARGE)[name].program, jax.random.split(jax.random.key(1), chains)
        info = initialize_model(keys, program)
        constrain = partial(constrain_fn, program, (), {})
        target = Density(info.potential_fn, constrain, info.param_info.z)
        mcmc = nuts(target, chains, longest, WARMUP)
        mcmc.run(jax.random.key(2), init_params=target.start, extra_fields=("z_grad",))
        z, extra = mcmc.get_samples(), mcmc.get_extra_fields()
        found = {
            "draws": rows(z),
            "scores": -rows(extra["z_grad"]),
            "values": rows(jax.vmap(constrain)(z)),
        }
        return {name: one.reshape(runs, CHAINS, longest, -1) for name, one in found.items()}


def cached(name: str, cache: Path) -> dict[str, np.ndarray]:
    """The same from the folder, sampled first if they are not there."""
    path = cache / f"{name}.npz"
    if not path.exists():
        sizes = (1, LONG) if name in LARGE else (RUNS, LONGEST)
        save(path, {"model": name}, sampled(name, *sizes))
    return read(path)[1]


def cut(chains: dict[str, np.ndarray], run: int, length: int) -> tuple[np.ndarray, sx.Sample]:
    """The parameters and the sample of the first draws of a run's chains."""
    draws, scores, values = (
        chains[part][run, :, :length] for part in ("draws", "scores", "values")
    )
    return values, sx.Sample(draws, scores)
