"""The lasso against a ridge: posteriors of moderate dimension, and a sparse target.

Gains are ratios of mean squared errors, plain over controlled, geometric means over integrands.
"""

import time

import numpy as np

import steinax as sx

from ..posteriors._data import load, starts

POSTERIORS = (
    "mesquite-mesquite",
    "nes1980-nes",
    "diamonds-diamonds",
    "gp_pois_regr-gp_pois_regr",
    "eight_schools-eight_schools_noncentered",
)
DRAWS = {200: 4, 1000: 2}  # and how many blocks of them
MOST = {200: 500, 1000: 300}  # coefficients
INTEGRANDS = 3  # parameters, and their squares
TARGET = "sparse target"
SOLVERS = {
    "Exact": (sx.Exact(), None),
    "Exact, weak ridge": (sx.Exact(), sx.NativeNorm(1e-6)),
    "Sparse": (sx.Sparse(), None),
}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """One row for each target, number of draws, degree and solver."""
    names = [name for name in (TARGET, *POSTERIORS) if only is None or only in name]
    rows = []
    for name in names:
        for n, blocks in DRAWS.items():
            samples = _samples(name, n, blocks if rounds is None else rounds)
            rows += _rows(name, n, *samples)
    return rows


def _rows(name: str, n: int, samples: list, truth: np.ndarray) -> list[dict]:
    rows, dim = [], samples[0][1].dim
    for degree in (2, 3, 4):
        p = sx.Polynomial(degree).size(None, dim)
        if p > MOST[n]:
            continue
        for label, (solver, penalty) in SOLVERS.items():
            if penalty is not None and 2 * p <= n:
                continue  # there is no penalty by default
            begun = time.process_time()
            row = _one(samples, truth, sx.Polynomial(degree), solver, penalty)
            seconds = (time.process_time() - begun) / len(samples)
            about = {"target": name, "dim": dim, "draws": n, "degree": degree, "coefficients": p}
            rows.append(about | {"solver": label} | row | {"CPU s": round(seconds, 2)})
    return rows


def _one(samples: list, truth: np.ndarray, family, solver, penalty) -> dict:
    """Gains in mean square for the means and the squares, and what the error bars say."""
    plain, better, worth = [], [], []
    for f, sample in samples:
        est = sx.estimate(
            f, sample, family, solver=solver, penalty=penalty, split=sx.CrossFit(4), audit="off"
        )
        plain.append((est.plain_value - truth) ** 2)
        better.append((est.value - truth) ** 2)
        worth.append((est.plain_mcse / est.mcse) ** 2)
    gain = np.mean(plain, axis=0) / np.mean(better, axis=0)
    half = len(truth) // 2
    return {
        "gain, means": _geometric(gain[:half]),
        "gain, squares": _geometric(gain[half:]),
        "by error bars, means": _geometric(np.array(worth)[:, :half]),
        "by error bars, squares": _geometric(np.array(worth)[:, half:]),
    }


def _samples(name: str, n: int, blocks: int) -> tuple[list, np.ndarray]:
    """Integrands and samples, and the expectations."""
    if name == TARGET:
        return _sparse_target(n, blocks)
    posterior = load(name)
    k = posterior.f.shape[1] // 2
    few = [*range(min(INTEGRANDS, k)), *range(k, k + min(INTEGRANDS, k))]
    whole = sx.Sample(posterior.u, posterior.score)
    values = {posterior.names[i]: posterior.f[None, :, i] for i in few}
    dim = posterior.u.shape[1]
    family = sx.Polynomial(3 if dim <= 10 else 2)
    truth = sx.estimate(values, whole, family, split=sx.InSample(), audit="off").value
    made = []
    for start in starts(n, 10 if n == 1000 else blocks)[:blocks]:
        rows = slice(int(start), int(start) + n)
        sample = sx.Sample(posterior.u[rows], posterior.score[rows])
        own = {posterior.names[i]: posterior.f[None, rows, i] for i in few}
        made.append((sx.data.integrands(own, sample), sample))
    return made, truth


def _sparse_target(n: int, blocks: int) -> tuple[list, np.ndarray]:
    """Twelve normal coordinates, of which each integrand sees one or two."""
    made = []
    for seed in range(blocks):
        x = np.random.default_rng(seed).normal(size=(1, n, 12))
        f = {"sin": np.sin(x[..., 0]), "cube": x[..., 1] ** 3 + x[..., 2] * x[..., 3]}
        f |= {"cos": np.cos(x[..., 0]), "product": x[..., 1] ** 2 * x[..., 2]}
        sample = sx.Sample(x, -x)
        made.append((sx.data.integrands(f, sample), sample))
    return made, np.array([0.0, 0.0, np.exp(-0.5), 0.0])


def _geometric(values: np.ndarray) -> float:
    return float(f"{np.exp(np.mean(np.log(values))):.3g}")
