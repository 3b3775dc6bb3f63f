"""Draws chosen by Stein thinning against every k-th and random ones: discrepancy and errors of means.

`ksd` is the kernel Stein discrepancy in the coordinates of all draws, `means` and `squares` the root mean
squared errors of those averages, in posterior standard deviations; of random subsets the averages of all
are given. "Uncorrelated" is thinned in whitened coordinates. `speed` is the CPU time of the package
stein_thinning over ours, once compiled, where both give the same points.
"""

import time

import jax
import numpy as np

import steinax as sx

from .._data import data_folder

SIZES = (20, 100)
SUBSETS = 5  # at random, for each chain
EVERY = 4  # of the 40,000 draws of a Lotka-Volterra chain


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """A row for each problem, number of draws and way to choose; `rounds` is how many chains to use."""
    rows = []
    if only in (None, "mixture"):
        rows += _rows("mixture, 500 draws", _mixture(), None)
    if only in (None, "lotka_volterra"):
        chains, truth = _lotka_volterra()
        rows += _rows("Lotka-Volterra, 10,000 draws", chains[:rounds], truth)
    return rows


def _mixture() -> list[sx.Sample]:
    """The example of stein_thinning, from its start far away on; its truth is not given."""
    folder = data_folder("stein_thinning_gmm")
    return [
        sx.Sample(*(np.loadtxt(folder / f"{one}.csv", delimiter=",") for one in ("smp", "scr")))
    ]


def _lotka_volterra() -> tuple[list[sx.Sample], np.ndarray]:
    """Five chains in standardised coordinates, and their expectations, by control variates, from all."""
    with np.load(data_folder("lotka_volterra") / "lv_generated_pmala.npz") as stored:
        x, score = stored["x"], stored["score"]
    mean, scale = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    z, slope = (x - mean) / scale, score * scale
    samples = [sx.Sample(a[::EVERY], b[::EVERY]) for a, b in zip(z, slope, strict=True)]
    some = sx.Sample(z[:, ::20], slope[:, ::20])
    wanted = {"mean": some.draws, "square": np.square(some.draws)}
    truth = sx.estimate(wanted, some, sx.Polynomial(4), audit="off").value
    return samples, np.reshape(truth, (2, -1))


def _moments(x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Means, then squares, (2, dim)."""
    return np.stack([np.average(x**p, axis=0, weights=weights) for p in (1, 2)])


def _rows(problem: str, samples: list[sx.Sample], truth: np.ndarray | None) -> list[dict]:
    rows = []
    for m in SIZES:
        found: dict[str, list] = {}
        speed = _speed(samples[0], m)
        for sample in samples:
            for name, ksd, value in _ways(sample, m, truth is not None):
                found.setdefault(name, []).append((ksd, value))
        for name, several in found.items():
            errors = (None, None) if truth is None else _errors([v for _, v in several], truth)
            rows.append(
                {
                    "problem": problem,
                    "m": m,
                    "draws": name,
                    "ksd": None
                    if several[0][0] is None
                    else float(np.mean([k for k, _ in several])),
                    "means": errors[0],
                    "squares": errors[1],
                    "speed": speed if name == "thinned" else None,
                }
            )
    return rows


def _errors(values: list[np.ndarray], truth: np.ndarray) -> tuple[float, float]:
    means, squares = np.sqrt(np.mean((np.array(values) - truth) ** 2, axis=(0, 2)))
    return float(means), float(squares)


def _ways(sample: sx.Sample, m: int, averages: bool) -> list[tuple]:
    """The name of each way to choose m draws, their discrepancy and their averages."""
    thinned, held = sx.thin(sample, m), sx.thin(sample, m, nonnegative=True)
    white = sx.thin(sample, m, standardise=_white(sample))
    x, n = thinned.sample.x, sample.size
    rows = [
        ("thinned", thinned.ksd[-1], _moments(x)),
        ("thinned, weighted", thinned.weighted_ksd, _moments(x, thinned.weights)),
        ("thinned, no negative weights", held.weighted_ksd, _moments(x, held.weights)),
    ]
    rows += [
        ("thinned, uncorrelated", *_subset(sample, white.indices)),
        ("thinned, uncorrelated, weighted", None, _moments(white.sample.x, white.weights)),
    ]
    regular = np.linspace(0, n - 1, m).astype(int)
    rows.append(("every k-th", *_subset(sample, regular)))
    rng = np.random.default_rng(0)
    for _ in range(SUBSETS):
        rows.append(("at random", *_subset(sample, rng.choice(n, m, replace=False))))
    if averages:
        wanted = {"mean": sample.draws, "square": np.square(sample.draws)}
        est = white.estimate(wanted, audit="off")
        rows.append(("uncorrelated, `estimate`", None, np.reshape(est.value, (2, -1))))
        rows.append(("all, plain", None, np.reshape(est.plain_value, (2, -1))))
    return rows


def _white(sample: sx.Sample) -> sx.data.AffineMap:
    """Coordinates in which the draws have the covariance 1."""
    with jax.enable_x64(True):
        return sx.data.standardise(sample.x)


def _subset(sample: sx.Sample, places: np.ndarray) -> tuple[float, np.ndarray]:
    some = sx.Sample(sample.x[places], sample.score[places])
    return sx.ksd(some, like=sample), _moments(some.x)


def _speed(sample: sx.Sample, m: int) -> float | None:
    """How many times the CPU time of ours stein_thinning takes; None where it is not installed."""
    try:
        from stein_thinning.thinning import thin
    except ImportError:
        return None
    same = np.array_equal(sx.thin(sample, m).indices, thin(sample.x, sample.score, m))
    times = []
    for run in (lambda: sx.thin(sample, m), lambda: thin(sample.x, sample.score, m)):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return times[1] / times[0] if same else float("nan")
