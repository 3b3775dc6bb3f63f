"""Right samples of several targets, and the everyday mistakes made with their scores."""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaincinv, ndtr

Pair = tuple[np.ndarray, np.ndarray]


def chains(seed: int, shape: tuple[int, int, int], rho: float) -> np.ndarray:
    """Standard Gaussian AR(1) chains, stationary from the first draw."""
    noise = np.random.default_rng(seed).normal(size=shape)
    out = np.empty(shape)
    out[:, 0] = noise[:, 0]
    for t in range(1, shape[1]):
        out[:, t] = rho * out[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return out


def gaussian(z: np.ndarray) -> Pair:
    """A Gaussian whose neighbouring dimensions correlate by a half."""
    index = np.arange(z.shape[2])
    root = np.linalg.cholesky(0.5 ** np.abs(index[:, None] - index))
    return z @ root.T, -z @ np.linalg.inv(root)


def log_gamma(z: np.ndarray, shape: float = 2.0) -> Pair:
    """Logarithms of gamma variables: skewed."""
    g = gammaincinv(shape, ndtr(z))
    return np.log(g), shape - g


def student(z: np.ndarray, freedom: float = 2.5) -> Pair:
    """Student's t in dimensions 1 and on; the first Gaussian makes the common scale."""
    weight = 2 * gammaincinv(freedom / 2, ndtr(z[..., :1])) / freedom
    x = z[..., 1:] / np.sqrt(weight)
    score = -(freedom + x.shape[2]) * x / (freedom + (x**2).sum(axis=2, keepdims=True))
    return x, score


def banana(z: np.ndarray) -> Pair:
    """A banana in the first two dimensions."""
    x, score = z.copy(), -z
    x[..., 1] += z[..., 0] ** 2
    score[..., 0] += 2 * z[..., 0] * z[..., 1]
    return x, score


def funnel(z: np.ndarray) -> Pair:
    """Neal's funnel: the scores of its neck have heavy tails."""
    v, rest = 3 * z[..., :1], z[..., 1:]
    first = -v / 9 - rest.shape[2] / 2 + 0.5 * (rest**2).sum(axis=2, keepdims=True)
    x = np.concatenate([v, rest * np.exp(v / 2)], axis=2)
    return x, np.concatenate([first, -rest * np.exp(-v / 2)], axis=2)


def mixture(z: np.ndarray) -> Pair:
    """Two Gaussians three apart, of weights 0.3 and 0.7."""
    left = ndtr(z[..., :1]) < 0.3
    middle = np.zeros(z.shape[2] - 1)
    middle[0] = 1.5
    x = z[..., 1:] + np.where(left, -middle, middle)
    odds = 0.3 / 0.7 * np.exp(-2 * x @ middle)
    return x, -x + middle * ((1 - odds) / (1 + odds))[..., None]


TARGETS: dict[str, Callable[[np.ndarray], Pair]] = {
    "gaussian": gaussian,
    "log gamma": log_gamma,
    "student": student,
    "banana": banana,
    "funnel": funnel,
    "mixture": mixture,
}


def _columns(x: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`change` made to dimensions 3 and 7."""
    out = x.copy()
    out[..., [3, 7]] = change(x[..., [3, 7]])
    return out


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


MISTAKES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], Pair]]] = {
    "flipped sign": ("sign", lambda x, s: (x, -s)),
    "missing log Jacobian": ("jacobian", lambda x, s: (x, _columns(s, lambda c: c - 1))),
    "missing logit Jacobian": (
        "jacobian",
        lambda x, s: (x, s - (1 - 2 * _sigmoid(x)) * (np.arange(x.shape[2]) % 2)),
    ),
    "permuted columns": ("order", lambda x, s: (x, s[..., [1, 2, 0, *range(3, 8), 9, 8]])),
    "one draw late": ("lag", lambda x, s: (x[:, 1:], s[:, :-1])),
    "one draw early": ("lag", lambda x, s: (x[:, :-1], s[:, 1:])),
    "constrained by exp": ("constrained", lambda x, s: (_columns(x, np.exp), s)),
    "constrained by sigmoid": ("constrained", lambda x, s: (_columns(x, _sigmoid), s)),
    "temperature 2": ("tempered", lambda x, s: (x, s / 2)),
    "temperature 1/2": ("tempered", lambda x, s: (x, s * 2)),
}
