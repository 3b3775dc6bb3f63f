"""Draws of the LIDAR posterior by an adaptive Metropolis sampler, and how they are checked."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

from .._data import data_folder
from . import _lidar_model as model
from ._chains import kept

WARMUP, THINNING = 1000, 3
STATES = 20  # points that the proposal is fitted to
START = np.array([-0.5, -4.5])
SEED = 1
COMPARED = 200  # scores of the file


def chain(size: int) -> dict[str, np.ndarray]:
    """Thinned draws with scores, values of the integrands, and the exact expectations: run once."""
    return kept(f"lidar_{size}", lambda: _sampled(size))


def _sampled(size: int) -> dict[str, np.ndarray]:
    """NumPyro's sample-adaptive Metropolis (Zhu 2019): it needs no gradient, compiles, is maintained."""
    from numpyro.infer import MCMC, SA

    with jax.enable_x64():
        sampler = MCMC(
            SA(potential_fn=model.potential, adapt_state_size=STATES),
            num_warmup=WARMUP,
            num_samples=size * THINNING,
            thinning=THINNING,
            progress_bar=False,
        )
        sampler.run(jax.random.key(SEED), init_params=jnp.asarray(START))
        draws = np.asarray(sampler.get_samples())
    scores, fit = model.score(draws)
    values = model.integrands(draws, fit, model.largest())
    return {
        "draws": draws,
        "scores": scores,
        "values": values,
        "truth": model.expectations(),
        "truth_of_the_papers_prior": model.expectations("phi"),
    }


def checks(size: int) -> dict[str, Any]:
    """Scores, quadrature, the audit, and the means of our chain and of the seven of the file."""
    made = chain(size)
    with np.load(data_folder("lidar") / "lidar_gp_mcmc.npz") as stored:
        others, stored_scores = stored["chains"], stored["score_chain0"]
    every = len(stored_scores) // COMPARED
    given = (others[0, ::every] + model.SHIFT) / 2
    ours = model.score(given)[0] / 2  # by x, of which phi is half and a shift
    text = (data_folder("lidar") / "lidar_gp_quadrature.json").read_text(encoding="utf-8")
    exact = json.loads(text)
    again = model.as_in_the_file(made["truth"])
    phi = (others + model.SHIFT) / 2
    report = sx.audit(sx.Sample(made["draws"], made["scores"]))
    return {
        "score": float(np.abs(ours - stored_scores[::every]).max()),
        "quadrature": max(abs(value - exact[name]) for name, value in again.items()),
        "audit": report.passed,
        "audit_text": str(report),
        "truth": made["truth"].tolist(),
        "papers_prior": made["truth_of_the_papers_prior"].tolist(),
        "ours": _moments(made["values"][None]),
        "given": [_moments(np.concatenate([one, one**2], axis=-1)[None]) for one in phi],
    }


def _moments(values: np.ndarray) -> dict[str, list[float]]:
    """Means, their standard errors and the effective sample sizes of series, (1, draw, k)."""
    found = sx.chains.chain_statistics(values)
    return {
        "mean": np.asarray(found.mean).tolist(),
        "mcse": np.asarray(found.mcse).tolist(),
        "ess": np.asarray(found.ess).tolist(),
    }
