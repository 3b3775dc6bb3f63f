"""Chains of the models by NumPyro's NUTS in float64, kept in a folder."""

from pathlib import Path

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import constrain_fn, initialize_model

import steinax as sx

from .._store import read, save
from .models import LARGE, MODELS

CHAINS, LONGEST, WARMUP, RUNS = 4, 5000, 1000, 4
LONG = 25_000  # draws of each chain of a model that is large


def sampled(name: str, runs: int = RUNS, longest: int = LONGEST) -> dict[str, np.ndarray]:
    """Draws and scores, (run, chain, draw, dim), and the parameters as the model has them, (..., k)."""
    chains = CHAINS * runs
    with jax.enable_x64(True):
        program, keys = (MODELS | LARGE)[name].program, jax.random.split(jax.random.key(1), chains)
        info = initialize_model(keys, program)
        mcmc = MCMC(
            NUTS(potential_fn=info.potential_fn),
            num_warmup=WARMUP,
            num_samples=longest,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(2), init_params=info.param_info.z, extra_fields=("z_grad",))
        z, gradient = mcmc.get_samples(), mcmc.get_extra_fields()["z_grad"]
        constrain = jax.vmap(lambda z: constrain_fn(program, (), {}, z))
        shape = (runs, CHAINS, longest, -1)

        def rows(tree: dict) -> np.ndarray:
            return np.asarray(jax.vmap(lambda one: ravel_pytree(one)[0])(tree)).reshape(shape)

        return {"draws": rows(z), "scores": -rows(gradient), "values": rows(constrain(z))}


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
