"""Scores that are wrong in ways that estimates show only by a few of their plain standard errors.

Four dimensions, AR(1) chains. Each case gives draws, scores and the log density that was sampled.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from ._scored import DENSITIES, banana, gaussian, log_gamma

type Case = tuple[np.ndarray, np.ndarray, np.ndarray]
type Make = Callable[[np.ndarray], Case]

DIM = 4
RHO = 0.3
CLIPPED = (3.0, 2.0, 1.0)


@dataclass(frozen=True)
class Wrong:
    """A mistake: how it is made of standard normal chains, and what those are."""

    make: Make
    rho: float = RHO
    dim: int = DIM


def _right(target: str, z: np.ndarray) -> Case:
    make = {"Gaussian": gaussian, "log gamma": log_gamma(2.0), "banana": banana}[target]
    x, score = make(z)
    return x, score, DENSITIES[target](x)


def _scaled(z: np.ndarray, sd: float, mean: float = 0.0) -> Case:
    """A Gaussian whose first dimension has this standard deviation and mean."""
    x, score, density = _right("Gaussian", z)
    scale = np.array([sd, 1.0, 1.0, 1.0])
    return x * scale + mean * np.eye(DIM)[0], score / scale, density


def _first(change: Callable[[np.ndarray], np.ndarray], sd: float, mean: float = 0.0) -> Make:
    """The score of the first dimension changed by a function of its draws."""

    def make(z: np.ndarray) -> Case:
        x, score, density = _scaled(z, sd, mean)
        score = score.copy()
        score[..., 0] += change(x[..., 0])
        return x, score, density

    return make


def _simplex(concentration: float) -> Make:
    """Log ratios of a Dirichlet variable, without the Jacobian of the simplex."""

    def make(z: np.ndarray) -> Case:
        gamma = gammaincinv(concentration, ndtr(z))
        p = gamma / gamma.sum(axis=2, keepdims=True)
        score = (concentration - 1.0) * (1.0 - p.shape[2] * p[..., :-1])
        density = concentration * np.log(p).sum(axis=2)
        return np.log(p[..., :-1] / p[..., -1:]), score, density

    return make


def _tempered(factor: float, target: str = "Gaussian") -> Make:
    def make(z: np.ndarray) -> Case:
        x, score, density = _right(target, z)
        return x, factor * score, density

    return make


def _likelihood(weight: float) -> Make:
    """Without a prior of mean 1 and this precision."""

    def make(z: np.ndarray) -> Case:
        x, score, density = _right("Gaussian", z)
        return x, score + weight * (x - 1.0), density

    return make


def _other_data(part: float) -> Make:
    """A regression whose scores are of data of which a part was drawn anew."""
    rng = np.random.default_rng(99)
    design, truth = rng.normal(size=(40, DIM)), np.array([1.0, -1.0, 0.5, 0.0])
    y = design @ truth + rng.normal(size=40)
    other, count = y.copy(), int(part * 40)
    other[:count] = design[:count] @ truth + rng.normal(size=count)
    precision = design.T @ design + np.eye(DIM)
    mean, wrong = (np.linalg.solve(precision, design.T @ one) for one in (y, other))
    root = np.linalg.inv(np.linalg.cholesky(precision)).T

    def make(z: np.ndarray) -> Case:
        x = mean + z @ root.T
        density = -0.5 * np.einsum("cnd,de,cne->cn", x - mean, precision, x - mean)
        return x, -(x - wrong) @ precision, density

    return make


def _truncated(at: float) -> Make:
    """The first dimension is cut off below."""

    def make(z: np.ndarray) -> Case:
        below = ndtr(at)
        first = ndtri(below + ndtr(z[..., :1]) * (1.0 - below))
        x = np.concatenate([first, z[..., 1:]], axis=2)
        return x, -x, -0.5 * (x**2).sum(axis=2)

    return make


def _late(z: np.ndarray) -> Case:
    x, score, density = _right("Gaussian", z)
    return x[:, 1:], score[:, :-1], density[:, 1:]


def _swapped(z: np.ndarray) -> Case:
    x, score, density = _right("Gaussian", z)
    return x, score[[1, 0, *range(2, len(score))]], density


def _one_chain(change: Callable[[np.ndarray], np.ndarray]) -> Make:
    """The scores of one chain of four changed."""

    def make(z: np.ndarray) -> Case:
        x, score, density = _right("Gaussian", z)
        score = score.copy()
        score[2] = change(score[2])
        return x, score, density

    return make


def _clipped(norm: float) -> Make:
    def make(z: np.ndarray) -> Case:
        x, score, density = _right("Gaussian", z)
        size = np.linalg.norm(score, axis=2, keepdims=True)
        return x, score * np.minimum(1.0, norm / size), density

    return make


def _rounded(z: np.ndarray) -> Case:
    x, score, density = _right("Gaussian", z)
    unit = 10.0 ** (2 - np.floor(np.log10(np.abs(score))))
    return x, np.round(score * unit) / unit, density


def _correlation(x: np.ndarray) -> np.ndarray:
    return 2.0 * np.tanh(x)


WRONG: dict[str, Wrong] = {
    **{
        f"log Jacobian missing, sd {sd}": Wrong(_first(lambda x: -np.ones_like(x), sd))
        for sd in (0.1, 0.2, 0.3, 0.5, 1.0)
    },
    **{
        f"correlation's Jacobian missing, sd {sd}": Wrong(_first(_correlation, sd, 0.5))
        for sd in (0.1, 0.2, 0.5, 1.0)
    },
    **{
        f"simplex Jacobian missing, concentration {a}": Wrong(_simplex(a), dim=DIM + 1)
        for a in (2, 10, 100)
    },
    **{f"tempered {b}": Wrong(_tempered(b)) for b in (0.5, 0.8, 0.9, 0.95)},
    **{f"tempered {b}, log gamma": Wrong(_tempered(b, "log gamma")) for b in (0.5, 0.8, 0.9)},
    **{f"tempered {b}, banana": Wrong(_tempered(b, "banana")) for b in (0.5, 0.8, 0.9)},
    **{f"likelihood only, prior weight {w}": Wrong(_likelihood(w)) for w in (0.05, 0.2, 0.5)},
    **{f"other data, {part:.0%} of them": Wrong(_other_data(part)) for part in (0.05, 0.2)},
    **{f"truncated at {at}": Wrong(_truncated(at)) for at in (0, -1, -2)},
    **{f"one draw late, AR(1) {rho}": Wrong(_late, rho) for rho in (0.0, 0.5, 0.9, 0.98)},
    "scores of two chains swapped": Wrong(_swapped),
    "one chain of four: sign": Wrong(_one_chain(lambda s: -s)),
    "one chain of four: tempered 0.5": Wrong(_one_chain(lambda s: 0.5 * s)),
    "one chain of four: log Jacobian, sd 1": Wrong(_one_chain(lambda s: s - np.eye(DIM)[0])),
    "one chain of four: one draw late": Wrong(_one_chain(lambda s: np.roll(s, 1, axis=0))),
    **{f"clipped at norm {c}": Wrong(_clipped(c)) for c in CLIPPED},
    "rounded to three digits": Wrong(_rounded),
}
