"""The catalogue: targets on which control variates are known to do harm, and how to draw from them."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..posteriors._data import TOTAL, load
from ..problems import Problem, banana, funnel, gaussian, genz, indicators, mixture, student

CHAINS = 4
SCHOOLS = "eight_schools-eight_schools_centered"
COMPARTMENT = "one_comp_mm_elim_abs-one_comp_mm_elim_abs"


class Drawn(NamedTuple):
    """One replicate: (chain, draw, dim) draws and scores, the integrands on them, and the truth."""

    draws: np.ndarray
    scores: np.ndarray
    f: dict[str, np.ndarray]
    truth: np.ndarray
    truth_error: np.ndarray


type Source = Callable[[int, int], Drawn]  # of the replicate's number and the number of draws


def exact(make: Callable[[], Problem]) -> Source:
    """Independent draws of a target of known expectations."""

    def drawn(number: int, n: int) -> Drawn:
        problem = make()
        x = problem.draw(np.random.default_rng([number, n]), n).reshape(CHAINS, -1, problem.dim)
        truth = problem.means
        return Drawn(x, problem.score(x), problem.values(x), truth, np.zeros_like(truth))

    return drawn


def noise(number: int, n: int) -> Drawn:
    """Functions that have nothing to do with the draws: normal, heavy-tailed, and two-valued."""
    made = exact(gaussian)(number, n)
    rng, shape = np.random.default_rng([number, n, 1]), made.draws.shape[:2]
    f = {
        "normal": rng.normal(size=shape),
        "t(3)": rng.standard_t(3, size=shape),
        "coin": rng.choice([-1.0, 1.0], size=shape),
    }
    return made._replace(f=f, truth=np.zeros(3), truth_error=np.zeros(3))


def permuted(number: int, n: int) -> Drawn:
    """Functions of the draws, in another order than the draws."""
    made = exact(gaussian)(number, n)
    order = np.random.default_rng([number, n, 2]).permutation(n)
    f = {name: v.reshape(-1)[order].reshape(v.shape) for name, v in made.f.items()}
    return made._replace(f=f)


def reference_draws(name: str) -> Source:
    """Disjoint blocks of reference draws, shuffled anew when all are used.

    The truth of a block is the mean of all other draws, with its own standard error; the draws are
    nearly independent. Blocks of one shuffle share none, those of two shuffles some.
    """

    def drawn(number: int, n: int) -> Drawn:
        posterior = _loaded(name)
        shuffle, block = divmod(number, TOTAL // n)
        order = np.random.default_rng([shuffle, 3]).permutation(TOTAL)
        rows = order[block * n : (block + 1) * n]
        others = np.delete(posterior.f, rows, axis=0)
        shape = (CHAINS, n // CHAINS)
        f = {one: posterior.f[rows, i].reshape(shape) for i, one in enumerate(posterior.names)}
        return Drawn(
            posterior.u[rows].reshape(*shape, -1),
            posterior.score[rows].reshape(*shape, -1),
            f,
            others.mean(axis=0),
            others.std(axis=0) / np.sqrt(len(others)),
        )

    return drawn


@lru_cache(maxsize=2)
def _loaded(name: str):
    return load(name)


CATALOGUE: dict[str, Source] = {
    "banana": exact(banana),
    "funnel": exact(funnel),
    "t(2.5)": exact(lambda: student(2.5)),
    "t(3)": exact(lambda: student(3.0)),
    "t(5)": exact(lambda: student(5.0)),
    "t(30)": exact(lambda: student(30.0)),
    "near mixture": exact(lambda: mixture(1.2)),
    "far mixture": exact(lambda: mixture(4.0)),
    "Genz": exact(genz),
    "indicators": exact(indicators),
    "pure noise": noise,
    "permuted f": permuted,
    "eight schools centred": reference_draws(SCHOOLS),
    "one-compartment": reference_draws(COMPARTMENT),
}
