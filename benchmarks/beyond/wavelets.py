"""Wavelets against polynomials and kernels, where f or the density has local structure.

A gain is the plain variance over the one that is left on held-out draws, as `estimate` reports it, a
geometric mean over the rounds. Every family gets the penalty, of three, and the kernel the length-scale, of
two, with the smallest standard error for each integrand.
"""

from collections.abc import Iterable

import numpy as np

import steinax as sx

from ..problems import Integrand, Problem, genz

N, ROUNDS = 1000, 2
PENALTIES = (1e-5, 1e-3, 1e-2)
SCALES = (0.3, 1.5)
NARROW, PLACE, SHARE = 0.05, 0.7, 0.3  # of the spike


def jumps() -> Problem:
    """A standard normal, and functions with a jump, a kink, a bump and no structure."""
    return Problem(
        "normal",
        1,
        lambda rng, n: rng.normal(size=(n, 1)),
        lambda x: -x,
        (
            Integrand("x > 1/2", lambda x: 1.0 * (x[..., 0] > 0.5), 0.3085375387259869),
            Integrand("abs(x - 1/2)", lambda x: np.abs(x[..., 0] - 0.5), 0.8955931148026121),
            Integrand(
                "bump at 0.7",
                lambda x: np.exp(-((x[..., 0] - 0.7) ** 2) * 50),
                float(np.exp(-0.49 / 2.02) / np.sqrt(101)),
            ),
            Integrand("sin x", lambda x: np.sin(x[..., 0]), 0.0),
        ),
    )


def spiked() -> Problem:
    """A normal with a spike of a twentieth of its width: the density has local structure."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        x = rng.normal(size=(n, 1))
        return np.where(rng.random((n, 1)) < SHARE, PLACE + NARROW * x, x)

    def score(x: np.ndarray) -> np.ndarray:
        wide = (1 - SHARE) * np.exp(-(x**2) / 2)
        spike = SHARE / NARROW * np.exp(-(((x - PLACE) / NARROW) ** 2) / 2)
        return (-wide * x - spike * (x - PLACE) / NARROW**2) / (wide + spike)

    second = 1 - SHARE + SHARE * (PLACE**2 + NARROW**2)
    return Problem(
        "spike",
        1,
        draw,
        score,
        (
            Integrand("x", lambda x: x[..., 0], SHARE * PLACE),
            Integrand("x^2", lambda x: x[..., 0] ** 2, second),
        ),
    )


def quadrant() -> Problem:
    """A standard normal in two dimensions: jumps and kinks that are sums, and that are products."""
    half = float(np.exp(0.5) * 2 * 0.15865525393145707)  # E exp(-|x|)
    return Problem(
        "normal",
        2,
        lambda rng, n: rng.normal(size=(n, 2)),
        lambda x: -x,
        (
            Integrand(
                "abs(x0) + (x1 > 0)", lambda x: np.abs(x[..., 0]) + (x[..., 1] > 0), 1.2978845608
            ),
            Integrand("x0, x1 > 0", lambda x: 1.0 * ((x[..., 0] > 0) & (x[..., 1] > 0)), 0.25),
            Integrand("exp(-abs(x0) - abs(x1))", lambda x: np.exp(-np.abs(x).sum(-1)), half**2),
        ),
    )


PROBLEMS = (jumps, spiked, quadrant, genz)


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """The gain of each family for each integrand; `only` is a word in the target's name."""
    found = []
    for problem in (make() for make in PROBLEMS):
        if only is None or only in problem.name:
            found += _rows(problem, rounds or ROUNDS)
    return found


def _rows(problem: Problem, rounds: int) -> list[dict]:
    gains: dict[str, list[np.ndarray]] = {}
    for seed in range(rounds):
        x = problem.draw(np.random.default_rng(seed), N).reshape(4, -1, problem.dim)
        sample, f = sx.Sample(x, problem.score(x)), problem.values(x)
        gains.setdefault("Polynomial(4)", []).append(_gain(f, sample, [sx.Polynomial(4)]))
        kernels = [sx.KernelTranslates(sx.kernels.Matern52(scale)) for scale in SCALES]
        gains.setdefault("kernel", []).append(_gain(f, sample, kernels))
        wavelets = sx.families.Wavelets(4 if problem.dim == 1 else 2, pairs=problem.dim > 1)
        gains.setdefault("Wavelets", []).append(_gain(f, sample, [wavelets]))
    means = {name: np.exp(np.mean(np.log(many), axis=0)) for name, many in gains.items()}
    return [
        {"target": f"{problem.name}, {problem.dim}d", "f": name}
        | {column: round(float(mean[i]), 2) for column, mean in means.items()}
        for i, name in enumerate(problem.names)
    ]


def _gain(f: dict, sample: sx.Sample, families: Iterable) -> np.ndarray:
    """Of the best setting for each integrand."""
    tried = [
        _of(sx.estimate(f, sample, family, penalty=sx.NativeNorm(penalty), audit="off"))
        for family in families
        for penalty in PENALTIES
    ]
    return np.max(tried, axis=0)


def _of(estimate: sx.Estimate) -> np.ndarray:
    return (estimate.plain_mcse / estimate.mcse) ** 2
