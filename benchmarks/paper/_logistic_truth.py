"""The truth of the logistic regressions: all draws, with control variates made for these integrands."""

import numpy as np

import steinax as sx

FOLDS = 5
CENTRES, WIDTH = np.linspace(-3, 3, 13), 0.6
RIDGE = 1e-8


def truth(
    draws: np.ndarray, scores: np.ndarray, values: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The expectations, and their standard errors, (k,).

    An integrand is a function of t = z'x alone. So the Langevin operator is applied to fields h(t) C z, C
    the covariance and h one of 13 bumps or of three powers, and the scores are regressors too. Five
    blocks of the chains are cross-fitted, their covariances too: one that had seen a draw would bias
    what is averaged over it. No method that is judged takes part.
    """
    chains, length, dim = draws.shape
    x, s = draws.reshape(-1, dim), scores.reshape(-1, dim)
    f = values.reshape(len(x), -1)
    fold = np.tile(np.arange(length) * FOLDS // length, chains)
    rest = np.empty((len(x), len(points)))
    for k in range(FOLDS):
        train, held = fold != k, fold == k
        centre, covariance = x[train].mean(axis=0), np.cov(x[train].T)
        for j, point in enumerate(points):
            along = covariance @ point
            spread = np.sqrt(point @ along)
            t, push = (x - centre) @ point / spread, s @ along / spread
            design = np.hstack([np.ones((len(x), 1)), _fields(t, push), s])
            moments = design[train].T @ design[train]
            moments += RIDGE * np.diag(np.diag(moments))
            weights = np.linalg.solve(moments, design[train].T @ f[train, j])
            rest[held, j] = f[held, j] - design[held, 1:] @ weights[1:]
    found = sx.chains.chain_statistics(rest.reshape(chains, length, -1))
    return rest.mean(axis=0), np.asarray(found.mcse)


def _fields(u: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The operator on functions of the standardised t, (draw, function)."""
    bumps = [np.exp(-0.5 * ((u - c) / WIDTH) ** 2) for c in CENTRES]
    found = [h * score - (u - c) / WIDTH**2 * h for h, c in zip(bumps, CENTRES, strict=True)]
    return np.stack([*found, score, u * score + 1, u**2 * score + 2 * u], axis=1)
