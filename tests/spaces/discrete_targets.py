"""Targets on counts and binary vectors: sums over all states that matter, exact draws, and right scores."""

from collections.abc import Callable

import numpy as np
from scipy import special, stats

import steinax as sx
from spaces.space_targets import SpaceTarget


def states(levels: int, dim: int) -> np.ndarray:
    """All vectors of `dim` entries from 0 to `levels` - 1: (levels ** dim, dim)."""
    return np.stack(np.meshgrid(*[np.arange(float(levels))] * dim, indexing="ij"), -1).reshape(
        -1, dim
    )


def _target(
    name: str,
    space: sx.data.AbstractSpace,
    nodes: np.ndarray,
    log_pmf: np.ndarray,
    score: Callable[[np.ndarray], np.ndarray],
) -> SpaceTarget:
    weights = np.exp(log_pmf - special.logsumexp(log_pmf))

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return nodes[rng.choice(len(nodes), size=n, p=weights / weights.sum())]

    return SpaceTarget(name, space, nodes, weights, score, draw)


def poisson(rate: float = 3.0) -> SpaceTarget:
    """One Poisson count, up to 80: what lies beyond has mass 1e-80 or so."""
    nodes = states(80, 1)
    logs = stats.poisson.logpmf(nodes[:, 0], rate)
    return _target("Poisson", sx.spaces.Counts(), nodes, logs, lambda x: 1 - x / rate)


def negative_binomial(shape: float = 2.5, chance: float = 0.4) -> SpaceTarget:
    """One negative binomial count, of geometric tails, up to 200."""
    nodes = states(200, 1)
    logs = stats.nbinom.logpmf(nodes[:, 0], shape, chance)

    def score(x):
        return 1 - x / ((1 - chance) * (x + shape - 1))

    return _target("negative binomial", sx.spaces.Counts(), nodes, logs, score)


def competing(rates: tuple[float, float] = (3.0, 4.0), strength: float = 0.1) -> SpaceTarget:
    """Two Poisson counts that keep each other low, up to 60 each."""
    nodes, rate = states(60, 2), np.array(rates)
    logs = stats.poisson.logpmf(nodes, rate).sum(axis=1) - strength * nodes.prod(axis=1)

    def score(x):
        return 1 - x / rate * np.exp(strength * x[..., ::-1])

    return _target("competing", sx.spaces.Counts(), nodes, logs, score)


def ising(dim: int = 6, coupling: float = 0.3) -> SpaceTarget:
    """Spins on a ring in a field that differs from one to the next."""
    field = np.linspace(-0.3, 0.4, dim)
    nodes = states(2, dim)

    def pull(spin):
        return coupling * (np.roll(spin, 1, axis=-1) + np.roll(spin, -1, axis=-1)) + field

    def score(x):
        spin = 2 * x - 1
        return 1 - np.exp(-2 * spin * pull(spin))

    spin = 2 * nodes - 1
    logs = (spin * np.roll(spin, 1, axis=-1)).sum(axis=1) * coupling + spin @ field
    return _target("Ising", sx.spaces.Binary(), nodes, logs, score)


def coins(chances: tuple[float, ...] = (0.2, 0.7, 0.5)) -> SpaceTarget:
    """Independent coins."""
    p, nodes = np.array(chances), states(2, len(chances))
    logs = np.log(np.where(nodes == 1, p, 1 - p)).sum(axis=1)

    def score(x):
        return 1 - np.where(x == 1, (1 - p) / p, p / (1 - p))

    return _target("coins", sx.spaces.Binary(), nodes, logs, score)
