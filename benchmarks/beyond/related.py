"""Few draws of several related posteriors: each by itself, fitted together, and by a meta-learned network."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.io

import steinax as sx

from .._data import data_folder

TASKS = 8  # estimated; as many more train the network
DRAWS = (10, 20, 50)
ROUNDS = 3
PEER = (
    40.0  # CPU seconds of the vector-valued control variates' own code for a matrix of 400 points
)


class Problem(NamedTuple):
    """Tasks with their integrands and expectations."""

    samples: list[sx.Sample]
    f: list[dict]
    truth: np.ndarray


def sinusoids(n: int, rng: np.random.Generator) -> Problem:
    """Sinusoids of various heights and phases under Gaussians of various means and widths."""
    mean, width, height, phase = (
        a + b * rng.normal(size=2 * TASKS) for a, b in ((0, 0.5), (1, 0.1), (1, 0.3), (0, 0.3))
    )
    x = (mean + width * rng.normal(size=(n, 2 * TASKS))).T
    score = (mean[:, None] - x) / width[:, None] ** 2
    f = height[:, None] * np.sin(2 * x + phase[:, None])
    truth = height * np.exp(-2 * width**2) * np.sin(2 * mean + phase)
    return _problem(x[..., None], score[..., None], f, truth)


def van_der_pol(n: int, rng: np.random.Generator) -> Problem:
    """The log-likelihood under tempered posteriors of an oscillator; the truth is from 500 draws."""
    stored = scipy.io.loadmat(data_folder("van_der_pol") / "TI_samples.mat")
    some = np.r_[11:31:2, 12:31:2][: 2 * TASKS]  # every other temperature is estimated
    x, score, f = stored["theta"][0, some], -2 * stored["z"][0, some], stored["loglike"].T[some]
    if not _REFERENCE:
        for i in range(TASKS):
            whole = sx.Sample(x[i][:, None], score[i][:, None])
            family = sx.Polynomial(2) + sx.KernelTranslates()
            found = sx.estimate({"f": f[i][None]}, whole, family, audit="off")
            _REFERENCE.append(float(found.value[0]))
    pick = np.array([rng.choice(x.shape[1], n, replace=False) for _ in x])
    x, score, f = (np.take_along_axis(one, pick, axis=1) for one in (x, score, f))
    return _problem(x[..., None], score[..., None], f, np.array(_REFERENCE))


_REFERENCE: list[float] = []


def logistic(n: int, rng: np.random.Generator) -> Problem:
    """A prediction of logistic regression in groups of 20 observations each, by rejection."""
    beta = np.array([-0.5, 1.0]) + 0.3 * rng.normal(size=(2 * TASKS, 2))
    side = np.linspace(-6, 6, 241)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    draws, scores, truth = [], [], []
    for one in beta:
        z = np.stack([np.ones(20), rng.normal(size=20)], axis=1)
        y = rng.random(20) < 1 / (1 + np.exp(-z @ one))
        log_density = -np.logaddexp(0, -(grid @ z.T) * (2 * y - 1)).sum(1) - (grid**2).sum(1) / 8
        weight = np.exp(log_density - log_density.max())
        truth.append(weight @ _predicted(grid) / weight.sum())
        centre = weight @ grid / weight.sum()
        spread = np.cov(grid.T, aweights=weight)
        x = _rejected(z, y, centre, 1.5 * spread, n, rng)
        draws.append(x)
        scores.append((y - 1 / (1 + np.exp(-x @ z.T))) @ z - x / 4)
    x = np.array(draws)
    return _problem(x, np.array(scores), _predicted(x), np.array(truth))


def _predicted(beta: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-beta.sum(axis=-1)))


def _rejected(
    z: np.ndarray,
    y: np.ndarray,
    centre: np.ndarray,
    cover: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draws of the posterior from many of a Student's t around it."""
    root = np.linalg.cholesky(cover)
    unit = rng.standard_t(5, size=(20000, 1)) / np.sqrt(2) * _directions(20000, rng)
    x = centre + unit @ root.T
    radius = (unit**2).sum(1) * 2
    proposal = -3 * np.log1p(radius / 5) - np.log(np.sqrt(radius) + 1e-12)
    target = -np.logaddexp(0, -(x @ z.T) * (2 * y - 1)).sum(1) - (x**2).sum(1) / 8
    ratio = target - proposal
    kept = x[np.log(rng.random(len(x))) < ratio - ratio.max()]
    return kept[:n]


def _directions(count: int, rng: np.random.Generator) -> np.ndarray:
    angle = 2 * np.pi * rng.random(count)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _problem(x: np.ndarray, score: np.ndarray, f: np.ndarray, truth: np.ndarray) -> Problem:
    samples = [sx.Sample(a, s) for a, s in zip(x, score, strict=True)]
    return Problem(samples, [{"f": one[None]} for one in f], truth[:TASKS])


def plain(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Averages, with their intervals."""
    found = [sx.estimate(f, s, sx.Polynomial(1), audit="off") for f, s in _each(problem)]
    return _numbers(found, "plain_value"), np.stack([one.plain_interval()[0] for one in found])


def quadratic(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """What `estimate_many` does: a polynomial for each."""
    found = [sx.estimate(f, s, sx.Polynomial(2), audit="off") for f, s in _each(problem)]
    return _numbers(found, "value"), np.stack([one.interval()[0] for one in found])


def automatic(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """`estimate` for each, with all its candidates."""
    found = [sx.estimate(*one, audit="off") for one in _each(problem)]
    return _numbers(found, "value"), np.stack([one.interval()[0] for one in found])


def together(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """All tasks in one fit."""
    found = sx.contrib.estimate_related(problem.f[:TASKS], problem.samples[:TASKS], audit="off")
    return found.value[:, 0], found.interval()[:, 0]


def meta(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """A network trained on the other half of the tasks; its training counts in the time."""
    learned = sx.contrib.meta_learn(problem.f[TASKS:], problem.samples[TASKS:])
    found = [learned.estimate(*one, audit="off") for one in _each(problem)]
    return _numbers(found, "value"), np.stack([one.interval()[0] for one in found])


def _each(problem: Problem) -> zip:
    return zip(problem.f[:TASKS], problem.samples[:TASKS], strict=True)


def _numbers(found: list, name: str) -> np.ndarray:
    return np.array([getattr(one, name)[0] for one in found])


PROBLEMS = {"sinusoids": sinusoids, "van der Pol": van_der_pol, "logistic groups": logistic}
WAYS: dict[str, Callable] = {
    "plain": plain,
    "each alone, Polynomial(2)": quadratic,
    "each alone, estimate": automatic,
    "estimate_related": together,
    "meta-learned network": meta,
}


def measure(only: str | None = None, rounds: int | None = None, draws: tuple = DRAWS) -> list[dict]:
    """Errors against plain averages, coverage and time for every problem, number of draws and way."""
    rows = []
    for name, make in PROBLEMS.items():
        for n in draws if only is None or only in name else ():
            problems = [make(n, np.random.default_rng([r, n])) for r in range(rounds or ROUNDS)]
            found = {way: _run(run, problems) for way, run in WAYS.items()}
            rows += [_row(name, n, way, one, found["plain"]) for way, one in found.items()]
    return rows if only is not None and only not in "matrix" else [*rows, _matrix()]


def _run(run: Callable, problems: list[Problem]) -> tuple[np.ndarray, np.ndarray, float]:
    """Errors in standard deviations of f and whether they were covered, and the seconds of a later round."""
    errors, covered, seconds = [], [], []
    for problem in problems:
        start = time.process_time()
        value, interval = run(problem)
        seconds.append(time.process_time() - start)
        size = np.array([np.std(one["f"]) for one in problem.f[:TASKS]])
        errors.append((value - problem.truth) / size)
        covered.append((interval[:, 0] <= problem.truth) & (problem.truth <= interval[:, 1]))
    return np.array(errors), np.array(covered), min(seconds)


def _row(problem: str, n: int, way: str, found: tuple, plain: tuple) -> dict:
    errors, covered, seconds = found
    squares, of_plain = errors**2, plain[0] ** 2
    return {
        "problem": problem,
        "draws each": n,
        "way": way,
        "error / plain": float(np.sqrt(squares.mean() / of_plain.mean())),
        "median error / plain": float(np.sqrt(np.median(squares) / np.median(of_plain))),
        "covered by 95%": float(covered.mean()),
        "CPU s": seconds,
    }


def _matrix() -> dict:
    """The whole fit of 400 points, kernel matrix and factorisation, against the peer's matrix alone."""
    each = 400 // (2 * TASKS)
    problem = sinusoids(each, np.random.default_rng(0))
    family, relation = sx.KernelTranslates(), np.ones((2 * TASKS, 2 * TASKS))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        sx.contrib.fit_related(problem.f, problem.samples, relation, family)
        seconds.append(time.process_time() - start)
    way = f"fit_related, {PEER / min(seconds):.0f} times faster than the peer's matrix alone"
    blank = {"error / plain": "", "median error / plain": "", "covered by 95%": ""}
    return (
        {"problem": "400 points", "draws each": each, "way": way} | blank | {"CPU s": min(seconds)}
    )
