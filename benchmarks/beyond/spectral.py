"""The spectral variance against least squares: mean squared errors on five kinds of chains.

A ratio above one says that the spectral variance did better; geometric means over four integrands.
"""

import numpy as np

import steinax as sx

from ._bananas import autoregressive, hamiltonian, nuts, score

CHAINS, LENGTH, REPLICATES = 2, 250, 30
SAMPLERS = {
    "AR(1), 0.9": autoregressive(0.9, 0.9),
    "AR(1), 0.95 and 0": autoregressive(0.95, 0.0),
    "MALA": hamiltonian(0.8, 1),
    "HMC, antithetic": hamiltonian(0.4, 6),
    "NUTS": nuts,
}
FAMILIES = {
    "Polynomial(1)": sx.Polynomial(1),
    "Polynomial(2)": sx.Polynomial(2),
    "kernel, 40 landmarks": sx.KernelTranslates(centres=sx.Landmarks(40)),
}
WIDTHS = (4, 16)
TRUTH = np.array([0.5, 3**-0.5, 1.5, (np.exp(-0.5) * (1 - 1j) ** -0.5).real])


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """One row for each sampler and family."""
    rows = []
    for name, sampler in SAMPLERS.items():
        if only is not None and only not in name:
            continue
        replicates = REPLICATES if rounds is None else rounds
        x = sampler(np.random.default_rng(0), (replicates * CHAINS, LENGTH))
        x = x.reshape(replicates, CHAINS, LENGTH, 2)
        rows += [{"chain": name, "family": f} | _row(x, family) for f, family in FAMILIES.items()]
    return rows


def _row(x: np.ndarray, family: sx.families.AbstractFamily) -> dict:
    plain, least = _errors(x, family, sx.LeastSquares())
    row = {"gain of least squares": _ratio(plain, least)}
    for width in WIDTHS:
        own = _errors(x, family, sx.objectives.SpectralVariance(width))[1]
        row[f"better by, width {width}"] = _ratio(least, own)
        if width == 16:
            row["give or take"] = _noise(least, own)
    return row


def _errors(x: np.ndarray, family, objective) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of plain and controlled estimates, (replicate, k)."""
    plain, better = [], []
    for draws in x:
        est = sx.estimate(
            _integrands(draws),
            sx.Sample(draws, score(draws)),
            family,
            objective=objective,
            solver=sx.Exact(),
            split=sx.CrossFit(4),
            audit="off",
        )
        plain.append((est.plain_value - TRUTH) ** 2)
        better.append((est.value - TRUTH) ** 2)
    return np.array(plain), np.array(better)


def _integrands(x: np.ndarray) -> dict[str, np.ndarray]:
    a, b = x[..., 0], x[..., 1]
    return {"mean": b, "bell": np.exp(-(a**2)), "moment": a**2 * b, "cosine": np.cos(b)}


def _ratio(worse: np.ndarray, better: np.ndarray) -> float:
    logs = np.log(worse.mean(axis=0) / better.mean(axis=0))
    return float(f"{np.exp(logs.mean()):.3g}")


def _noise(worse: np.ndarray, better: np.ndarray) -> float:
    """The standard error of that ratio, by leaving out replicates."""
    keep = ~np.eye(len(worse), dtype=bool)
    logs = [np.log(worse[k].mean(0) / better[k].mean(0)).mean() for k in keep]
    relative = np.sqrt((len(logs) - 1) * np.var(logs))
    return float(f"{_ratio(worse, better) * relative:.2g}")
