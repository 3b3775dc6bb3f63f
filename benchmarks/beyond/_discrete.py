"""Three posteriors over counts and binary vectors, with expectations that are sums over all states."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

CHAINS, WARM_UP = 4, 100


@dataclass(frozen=True)
class Problem:
    """A mass function, a sampler of it, and functions with their exact expectations."""

    name: str
    space: sx.spaces.Counts | sx.spaces.Binary
    log_pmf: Callable  # of one state, made of jax
    draw: Callable[
        [np.random.Generator, int, int], np.ndarray
    ]  # so many chains, so many draws in each
    integrands: dict[str, Callable]  # of one state, made of jax
    exact: dict[str, float]

    def samples(self, seed: int, rounds: int, length: int) -> list[sx.Sample]:
        """The draws of four chains, with their scores, `rounds` times."""
        draws = self.draw(np.random.default_rng(seed), rounds * CHAINS, length)
        scores = self.space.scores(self.log_pmf, draws)
        return [
            sx.Sample(draws[i : i + CHAINS], scores[i : i + CHAINS], space=self.space)
            for i in range(0, len(draws), CHAINS)
        ]


def _exact(
    log_pmf: Callable, states: np.ndarray, integrands: dict[str, Callable]
) -> dict[str, float]:
    with jax.enable_x64():
        logs = jax.lax.map(log_pmf, jnp.asarray(states), batch_size=4096)
        chance = jax.nn.softmax(logs)
        return {
            name: float(chance @ jax.lax.map(f, jnp.asarray(states), batch_size=4096))
            for name, f in integrands.items()
        }


def grid(levels: int, dim: int) -> np.ndarray:
    """All states of `dim` coordinates from 0 to `levels` - 1."""
    axes = np.meshgrid(*[np.arange(float(levels))] * dim, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, dim)


def abundance() -> Problem:
    r"""How many animals were not seen: an N-mixture model of three sites, visited twice.

    $N_i \sim \text{Poisson}(\lambda a_i)$ with one $\lambda \sim \text{Gamma}(3, 1/2)$ for all sites, summed
    out; each visit sees an animal with chance 0.4. A state is the number unseen, $N_i$ less the most seen on
    one visit.
    """
    seen = np.array([[3.0, 4.0], [7.0, 5.0], [2.0, 0.0]])
    area, shape, rate, chance = np.array([1.0, 1.5, 0.6]), 3.0, 0.5, 0.4
    lgamma = jax.scipy.special.gammaln

    def log_pmf(x):
        n = x + seen.max(axis=1)
        own = n * jnp.log(area) - lgamma(n + 1) + 2 * n * jnp.log(1 - chance)
        visits = lgamma(n + 1)[:, None] - lgamma(n[:, None] - seen + 1)
        total = n.sum()
        shared = lgamma(shape + total) - (shape + total) * jnp.log(rate + area.sum())
        return own.sum() + visits.sum() + shared

    integrands = {
        "unseen at site 0": lambda x: x[0],
        "its square": lambda x: x[0] ** 2,
        "total": lambda x: x.sum(),
        "none unseen at site 2": lambda x: jnp.where(x[2] == 0, 1.0, 0.0),
    }
    exact = _exact(log_pmf, grid(60, 3), integrands)
    table = _table(log_pmf, 60, 3)
    return Problem("abundance", sx.spaces.Counts(), log_pmf, _walk(table), integrands, exact)


def ising(coupling: float) -> Problem:
    """Spins on a 3 x 4 grid with a weak field, by Glauber dynamics: one sweep a draw."""
    rows, columns = 3, 4
    dim = rows * columns
    at = np.arange(dim).reshape(rows, columns)
    bonds = [
        *zip(at[:-1].flat, at[1:].flat, strict=True),
        *zip(at[:, :-1].flat, at[:, 1:].flat, strict=True),
    ]
    weight = np.zeros((dim, dim))
    for i, j in bonds:
        weight[i, j] = weight[j, i] = coupling
    field = np.linspace(-0.1, 0.2, dim)

    def log_pmf(x):
        spin = 2 * x - 1
        return spin @ (weight @ spin) / 2 + field @ spin

    integrands = {
        "magnetisation": lambda x: jnp.mean(2 * x - 1),
        "its square": lambda x: jnp.mean(2 * x - 1) ** 2,
        "two neighbours": lambda x: (2 * x[0] - 1) * (2 * x[1] - 1),
        "opposite corners": lambda x: (2 * x[0] - 1) * (2 * x[-1] - 1),
    }
    exact = _exact(log_pmf, grid(2, dim), integrands)

    def odds(x, i):
        return 2 * ((2 * x - 1) @ weight[i] + field[i])

    name = f"Ising, coupling {coupling}"
    return Problem(name, sx.spaces.Binary(), log_pmf, _gibbs(odds, dim), integrands, exact)


def selection() -> Problem:
    """Which of ten correlated covariates belong in a regression of 60 cases: Zellner's g-prior."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 10)) + rng.normal(size=(60, 1))
    y = x @ (0.35 * np.array([1.0, 1, 1, 0, 0, 0.5, 0.5, 0, 0, 0])) + rng.normal(size=60)
    x, y = x - x.mean(axis=0), y - y.mean()
    n, dim = x.shape
    g = float(n)
    inner, cross, total = x.T @ x, x.T @ y, float(y @ y)

    def log_pmf(z):  # the rest of the design is the identity, and explains nothing
        design = z[:, None] * inner * z + jnp.diag(1 - z)
        explained = (z * cross) @ jnp.linalg.solve(design, z * cross) / total
        return -0.5 * z.sum() * jnp.log1p(g) - 0.5 * (n - 1) * jnp.log1p(-g / (1 + g) * explained)

    integrands: dict[str, Callable] = {
        f"inclusion of {i}": (lambda z, i=i: z[i]) for i in (0, 3, 5)
    }
    integrands["size"] = lambda z: z.sum()
    exact = _exact(log_pmf, grid(2, dim), integrands)
    table = _table(log_pmf, 2, dim)

    def odds(z, i):
        one, none = z.copy(), z.copy()
        one[:, i], none[:, i] = 1, 0
        return _at(table, one) - _at(table, none)

    return Problem("selection", sx.spaces.Binary(), log_pmf, _gibbs(odds, dim), integrands, exact)


def _table(log_pmf: Callable, levels: int, dim: int) -> np.ndarray:
    with jax.enable_x64():
        logs = jax.lax.map(log_pmf, jnp.asarray(grid(levels, dim)), batch_size=4096)
    return np.asarray(logs).reshape((levels,) * dim)


def _at(table: np.ndarray, states: np.ndarray) -> np.ndarray:
    return table[tuple(states.T.astype(int))]


def _gibbs(odds: Callable, dim: int) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """Every coordinate in turn, from its conditional distribution; a draw after every sweep."""

    def draw(rng: np.random.Generator, chains: int, length: int) -> np.ndarray:
        x = (rng.random((chains, dim)) < 0.5).astype(float)
        kept = np.empty((chains, length, dim))
        for t in range(-WARM_UP, length):
            for i in range(dim):
                x[:, i] = rng.random(chains) < 1 / (1 + np.exp(-odds(x, i)))
            kept[:, max(t, 0)] = x
        return kept

    return draw


def _walk(table: np.ndarray) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    """A random walk by Metropolis: every coordinate moves by up to three, and a draw after every sweep."""
    dim, levels = table.ndim, len(table)

    def draw(rng: np.random.Generator, chains: int, length: int) -> np.ndarray:
        x = rng.integers(0, 8, (chains, dim))
        kept = np.empty((chains, length, dim))
        for t in range(-WARM_UP, length):
            for i in range(dim):
                new = x.copy()
                new[:, i] += rng.choice([-3, -2, -1, 1, 2, 3], chains)
                inside = (new[:, i] >= 0) & (new[:, i] < levels)
                gain = _at(table, new * inside[:, None]) - _at(table, x)
                x = np.where((inside & (np.log(rng.random(chains)) < gain))[:, None], new, x)
            kept[:, max(t, 0)] = x
        return kept

    return draw
