"""Replicates of estimates on a space: mean squared errors against the plain ones, and coverage."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

import steinax as sx

CHAINS, LENGTH, ROUNDS = 4, 100, 10
WIDE = NormalDist().inv_cdf(0.975)

type Draw = Callable[[np.random.Generator, int], np.ndarray]
type Estimator = Callable[[np.ndarray], sx.Estimate]  # of draws, (chain, draw, dim)


@dataclass(frozen=True)
class Problem:
    """A density with exact draws, integrands of known means, and ways to estimate them."""

    name: str
    draw: Draw
    truth: dict[str, float]
    estimators: dict[str, Estimator]


def product_rule(*rules: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, dim) and weights (n,) of a product of rules."""
    nodes = np.stack(np.meshgrid(*(x for x, _ in rules), indexing="ij"), axis=-1)
    weights = rules[0][1]
    for _, more in rules[1:]:
        weights = np.multiply.outer(weights, more)
    return nodes.reshape(-1, len(rules)), weights.ravel()


def accepted(log_density: Callable, propose: Draw, bound: float) -> Draw:
    """Exact draws by rejection, `bound` being above the log density."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        kept: list[np.ndarray] = []
        while sum(map(len, kept)) < n:
            x = propose(rng, 8 * n)
            kept.append(x[np.log(rng.uniform(size=len(x))) < log_density(x) - bound])
        return np.concatenate(kept)[:n]

    return draw


def rows_of(problem: Problem, rounds: int | None) -> list[dict]:
    """A row for each way to estimate: the gain of every integrand, and how often its interval holds."""
    truth = np.array(list(problem.truth.values()))
    errors: dict[str, list[np.ndarray]] = {name: [] for name in ("plain", *problem.estimators)}
    covered: dict[str, list[np.ndarray]] = {name: [] for name in problem.estimators}
    for seed in range(ROUNDS if rounds is None else rounds):
        x = problem.draw(np.random.default_rng(seed), CHAINS * LENGTH).reshape(CHAINS, LENGTH, -1)
        for name, estimator in problem.estimators.items():
            est = estimator(x)
            errors[name].append((est.value - truth) ** 2)
            covered[name].append(np.abs(est.value - truth) <= WIDE * est.mcse + 1e-12)
        errors["plain"].append((est.plain_value - truth) ** 2)
    plain = np.mean(errors["plain"], axis=0)
    found = []
    for name in problem.estimators:
        gain = plain / np.maximum(np.mean(errors[name], axis=0), 1e-28)
        found += [
            {
                "problem": problem.name,
                "estimated": what,
                "by": name,
                "gain in mean squared error": float(f"{one:.3g}"),
                "95% intervals that hold": f"{np.sum(held)} of {len(held)}",
            }
            for what, one, held in zip(
                problem.truth, gain, np.transpose(covered[name]), strict=True
            )
        ]
    return found


def measured(problems: tuple[Callable[[], Problem], ...], only, rounds) -> list[dict]:
    """The rows of all problems, or of those whose name holds `only`."""
    made = [make() for make in problems]
    chosen = [one for one in made if only is None or only in one.name]
    return [row for one in chosen for row in rows_of(one, rounds)]
