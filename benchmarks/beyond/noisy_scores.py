"""What is left of the gain where scores are estimates from minibatches, with and without centring.

`noise` is the variance of the noise over that of the scores, `predicted` the gain of `Polynomial(1)` for
means by the formula. Gains are ratios of mean squared errors, of means and of standardised squares; `bias` is
that of the squares, whose expectation is 1. `covered` is the share of 95% intervals that hold the truth,
`refused` that of samples that fail their audit.
"""

from collections.abc import Iterator

import jax
import numpy as np

import steinax as sx

from . import _noisy_posterior as model

ROUNDS = 6
FAMILIES = {
    "Polynomial(1)": sx.Polynomial(1),
    "Polynomial(2)": sx.Polynomial(2),
    "kernel": sx.KernelTranslates(),
    "automatic": None,
}
LEVELS = {
    "minibatch of 100": (model.plain, 100),
    "minibatch of 1000": (model.plain, 1000),
    "minibatch of 5000": (model.plain, 5000),
    "centred, 10": (model.centred, 10),
    "centred, 100": (model.centred, 100),
    "all data": (None, model.N),
}
THREE = ("minibatch of 100", "centred, 100", "all data")
MISPAIRED = "minibatch of 100, of the step before"
SAMPLERS = {"HMC": model.hmc, "SGLD": model.sgld, "SGHMC": model.sghmc}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """A row for each sampler, kind of scores and family; `only` is the name of a sampler."""
    rounds = ROUNDS if rounds is None else rounds
    with jax.enable_x64(True):
        return [
            row
            for sampler in SAMPLERS
            if only in (None, sampler)
            for level, draws, scores in _cases(sampler, rounds * model.CHAINS)
            for row in _rows(sampler, level, draws, scores)
        ]


def _cases(sampler: str, chains: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Kinds of scores, draws and scores."""
    draws = SAMPLERS[sampler](chains)
    for level in LEVELS if sampler == "HMC" else THREE:
        score, batch = LEVELS[level]
        found = model.exact(draws) if score is None else model.at(draws, score, batch, seed=2)
        yield level, draws, found
    if sampler == "SGLD":
        yield MISPAIRED, *model.mispaired(draws, seed=3)


def _rows(sampler: str, level: str, draws: np.ndarray, scores: np.ndarray) -> list[dict]:
    own = [slice(i, i + model.CHAINS) for i in range(0, len(draws), model.CHAINS)]
    samples = [sx.Sample(draws[one], scores[one]) for one in own]
    shared = {
        "draws": sampler,
        "scores": level,
        "noise": _noise(draws, scores),
        "refused": float(np.mean([not sx.audit(one).passed for one in samples])),
    }
    names = ["Polynomial(1)", "Polynomial(2)", "kernel"] if sampler == "HMC" else ["Polynomial(2)"]
    if sampler == "HMC" and level in THREE[:2]:  # of what takes longest, less
        names.append("automatic")
    exact = sampler == "HMC"
    first = {"predicted": _predicted(scores) if exact else None}
    return [
        shared
        | {"family": name}
        | (first if name == "Polynomial(1)" else {"predicted": None})
        | _compared(samples, FAMILIES[name])
        for name in names
    ]


def _compared(samples: list[sx.Sample], family: sx.families.AbstractFamily | None) -> dict:
    """Every replicate estimated from its own chains, against the truth."""
    mean, scale = model.truth()
    right = np.repeat([0.0, 1.0], model.DIM)
    errors, plain, covered = [], [], []
    for sample in samples:
        z = (np.asarray(sample.draws) - mean) / scale
        est = sx.estimate({"mean": z, "square": z**2}, sample, family, audit="off")
        low, high = est.interval().T
        errors.append(est.value - right)
        plain.append(est.plain_value - right)
        covered.append((low <= right) & (right <= high))
    gain = np.mean(np.square(plain), axis=0) / np.mean(np.square(errors), axis=0)
    means, squares = np.exp(np.log(gain).reshape(2, -1).mean(axis=1))
    return {
        "gain, means": float(means),
        "gain, squares": float(squares),
        "bias, plain": float(np.mean(plain, axis=0)[model.DIM :].mean()),
        "bias": float(np.mean(errors, axis=0)[model.DIM :].mean()),
        "covered": float(np.mean(covered)),
    }


def _noise(draws: np.ndarray, scores: np.ndarray) -> float:
    """The variance of the noise over that of the scores, on average over the coordinates."""
    right = model.exact(draws)
    return float(np.mean((scores - right).var(axis=(0, 1)) / right.var(axis=(0, 1))))


def _predicted(scores: np.ndarray) -> float | None:
    r"""Gains $\sigma^2 / (\sigma^2 - a^\top (J + V)^{-1} a)$ of each coordinate, averaged as gains are.

    None where so little is left that the error of the moments is larger.
    """
    moments = np.cov(scores.reshape(-1, model.DIM), rowvar=False)
    left = 1 - np.diag(np.linalg.inv(moments)) / model.truth()[1] ** 2
    return float(np.exp(-np.log(left).mean())) if left.min() > 0 else None
