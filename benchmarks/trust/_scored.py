"""Right samples of easy and hard targets, and the everyday mistakes made with their scores."""

from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv, gammaincinv, ndtr

type Pair = tuple[np.ndarray, np.ndarray]
type Target = Callable[[np.ndarray], Pair]


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


def log_gamma(shape: float) -> Target:
    """Logarithms of gamma variables."""

    def target(z: np.ndarray) -> Pair:
        g = gammaincinv(shape, ndtr(z))
        return np.log(g), shape - g

    return target


def logit_beta(z: np.ndarray) -> Pair:
    """Logits of beta(1, 4) variables: probabilities left unconstrained."""
    p = betaincinv(1.0, 4.0, ndtr(z))
    return np.log(p) - np.log1p(-p), 1.0 - 5.0 * p


def student(freedom: float) -> Target:
    """Student's t; the first Gaussian makes the common scale."""

    def target(z: np.ndarray) -> Pair:
        weight = 2 * gammaincinv(freedom / 2, ndtr(z[..., :1])) / freedom
        x = z[..., 1:] / np.sqrt(weight)
        return x, -(freedom + x.shape[2]) * x / (freedom + (x**2).sum(axis=2, keepdims=True))

    return target


def banana(z: np.ndarray) -> Pair:
    """A banana in the first two dimensions."""
    x, score = z.copy(), -z
    x[..., 1] += z[..., 0] ** 2
    score[..., 0] += 2 * z[..., 0] * z[..., 1]
    return x, score


def funnel(z: np.ndarray) -> Pair:
    """Neal's funnel."""
    v, rest = 3 * z[..., :1], z[..., 1:]
    first = -v / 9 - rest.shape[2] / 2 + 0.5 * (rest**2).sum(axis=2, keepdims=True)
    x = np.concatenate([v, rest * np.exp(v / 2)], axis=2)
    return x, np.concatenate([first, -rest * np.exp(-v / 2)], axis=2)


def mixture(z: np.ndarray) -> Pair:
    """Two Gaussians three apart, of weights 0.3 and 0.7."""
    middle = np.zeros(z.shape[2] - 1)
    middle[0] = 1.5
    x = z[..., 1:] + np.where(ndtr(z[..., :1]) < 0.3, -middle, middle)
    odds = 0.3 / 0.7 * np.exp(-2 * x @ middle)
    return x, -x + middle * ((1 - odds) / (1 + odds))[..., None]


RIGHT: dict[str, Target] = {
    "Gaussian": gaussian,
    "log gamma, shape 1": log_gamma(1.0),
    "log gamma, shape 0.3": log_gamma(0.3),
    "logit beta": logit_beta,
    "t(2.5)": student(2.5),
    "banana": banana,
    "funnel": funnel,
    "mixture": mixture,
}
NAMED: dict[str, Target] = {
    "Gaussian": gaussian,
    "log gamma": log_gamma(1.0),
    "logit beta": logit_beta,
}


def _changed(x: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`change` made to dimensions 3 and 7."""
    out = x.copy()
    out[..., [3, 7]] = change(x[..., [3, 7]])
    return out


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _without_logit_jacobian(x: np.ndarray, score: np.ndarray) -> Pair:
    change = np.isin(np.arange(x.shape[2]), (1, 3, 5, 7, 9))
    return x, score - (1 - 2 * _sigmoid(x)) * change


MISTAKES: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], Pair]]] = {
    "flipped sign": ("sign", lambda x, s: (x, -s)),
    "missing Jacobian of a log (2 columns)": (
        "jacobian",
        lambda x, s: (x, _changed(s, lambda c: c - 1)),
    ),
    "missing Jacobian of a logit (5 columns)": ("jacobian", _without_logit_jacobian),
    "permuted columns": ("order", lambda x, s: (x, s[..., [1, 2, 0, *range(3, 8), 9, 8]])),
    "scores one draw late": ("lag", lambda x, s: (x[:, 1:], s[:, :-1])),
    "draws constrained by exp (2 columns)": ("constrained", lambda x, s: (_changed(x, np.exp), s)),
    "draws constrained by a sigmoid (2 columns)": (
        "constrained",
        lambda x, s: (_changed(x, _sigmoid), s),
    ),
    "tempered, half": ("tempered", lambda x, s: (x, s / 2)),
    "tempered, double": ("tempered", lambda x, s: (x, s * 2)),
}


def _banana_density(x: np.ndarray) -> np.ndarray:
    return -0.5 * ((x**2).sum(axis=-1) - x[..., 1] ** 2 + (x[..., 1] - x[..., 0] ** 2) ** 2)


def _funnel_density(x: np.ndarray) -> np.ndarray:
    v, rest = x[..., 0], x[..., 1:]
    return -(v**2) / 18 - rest.shape[-1] * v / 2 - 0.5 * (rest**2).sum(axis=-1) * np.exp(-v)


def _mixture_density(x: np.ndarray) -> np.ndarray:
    middle = np.zeros(x.shape[-1])
    middle[0] = 1.5
    parts = [
        np.log(w) - 0.5 * ((x - m) ** 2).sum(axis=-1) for w, m in ((0.3, -middle), (0.7, middle))
    ]
    return np.logaddexp(*parts)


def _gaussian_density(x: np.ndarray) -> np.ndarray:
    index = np.arange(x.shape[-1])
    precision = np.linalg.inv(0.5 ** np.abs(index[:, None] - index))
    return -0.5 * np.einsum("...i,ij,...j->...", x, precision, x)


def _log_gamma_density(shape: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: (shape * x - np.exp(x)).sum(axis=-1)


DENSITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Gaussian": _gaussian_density,
    "log gamma": _log_gamma_density(2.0),
    "log gamma, shape 1": _log_gamma_density(1.0),
    "log gamma, shape 0.3": _log_gamma_density(0.3),
    "logit beta": lambda x: (x - 5 * np.logaddexp(0.0, x)).sum(axis=-1),
    "t(2.5)": lambda x: -(2.5 + x.shape[-1]) / 2 * np.log(2.5 + (x**2).sum(axis=-1)),
    "banana": _banana_density,
    "funnel": _funnel_density,
    "mixture": _mixture_density,
}
