r"""A polynomial integrand on a Gaussian is integrated exactly by polynomials of its degree.

Errors are relative to the integrand's standard deviation plus its value. What limits them:

The draws are x = m + U S V' z with z standard normal and S of condition number kappa. In a rotated
frame every coordinate of x is as large as the strongest direction, so the weakest one is known to
eps kappa of its own size; the score is the other way round, as large as its weakest direction
demands, so its strongest is known to eps kappa. Whatever is computed from such data, however
carefully, is off by eps kappa times a constant below one: 2e-12 for kappa = 1e4 (covariances of
condition number 1e8), but 2e-8 for 1e8. Along the axes each number has its own exponent and
nothing is lost, whatever kappa. A shift by a standard deviations costs eps a in the same way.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import steinax as sx
from full import FULL, only_full

EPS = np.finfo(np.float64).eps
PROMISED = 1e-10


@dataclass(frozen=True)
class Map:
    """Scales from 1 to 1/condition, along the axes or rotated, and a shift in units of them."""

    condition: float = 1.0
    rotated: bool = False
    shift: float = 0.0

    def __str__(self) -> str:
        return f"{'rotated' if self.rotated else 'axes'} {self.condition:.0e} shift {self.shift:g}"

    def apply(self, rng: np.random.Generator, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """Draws, scores, mean and covariance."""
        dim = z.shape[1]
        scale = np.geomspace(1.0, 1 / self.condition, dim)
        left = right = np.eye(dim)
        if self.rotated:
            left, right = (np.linalg.qr(rng.normal(size=(dim, dim)))[0] for _ in range(2))
        mean = self.shift * (np.ones(dim) if self.rotated else scale)
        root, inverse = left * scale @ right, left / scale @ right
        return mean + z @ root.T, -z @ inverse.T, mean, root @ root.T


def _problem(dim: int, n: int, degree: int, way: Map, seed: int = 0):
    """A sample, integrands of the degree, and their expectations."""
    rng = np.random.default_rng(seed)
    x, score, mean, covariance = way.apply(rng, rng.normal(size=(n, dim)))
    shape = (4, n // 4, dim)
    f = {"mean": lambda x: x[0], "last": lambda x: x[-1], "product": lambda x: x[0] * x[-1]}
    exact = [mean[0], mean[-1], covariance[0, -1] + mean[0] * mean[-1]]
    f["norm"] = lambda x: jnp.sum(x**2)
    exact.append(np.trace(covariance) + np.sum(mean**2))
    if degree == 3:
        f["cube"] = lambda x: x[-1] ** 3
        exact.append(mean[-1] ** 3 + 3 * mean[-1] * covariance[-1, -1])
    return f, sx.Sample(x.reshape(shape), score.reshape(shape)), np.array(exact)


def _errors(dim: int, n: int, degree: int, way: Map) -> tuple[float, float]:
    """Of the held-out estimate and of the in-sample intercept."""
    f, sample, exact = _problem(dim, n, degree, way)
    values = sx.data.integrands(f, sample).values
    size = values.std(axis=(0, 1)) + np.abs(exact)
    held_out = sx.estimate(f, sample, sx.Polynomial(degree), split=sx.CrossFit()).value
    in_sample = sx.fit(f, sample, sx.Polynomial(degree)).intercept
    return np.max(np.abs(held_out - exact) / size), np.max(np.abs(in_sample - exact) / size)


SHAPES = [
    pytest.param(1, 40, 2, id="d=1"),
    pytest.param(10, 200, 2, id="d=10"),
    pytest.param(1, 40, 3, id="d=1 degree 3"),
    pytest.param(10, 576, 3, id="d=10 degree 3", marks=pytest.mark.slow),
    pytest.param(61, 4400, 2, id="d=61", marks=[pytest.mark.slow, only_full]),
]
ATTAINABLE = [
    Map(),
    Map(shift=1e3),
    Map(1e8),
    Map(1e8, shift=1e3),
    Map(rotated=True),
    Map(1e4, rotated=True),
    Map(1e4, rotated=True, shift=1e3),
]


@pytest.mark.slow
@pytest.mark.parametrize("way", ATTAINABLE, ids=str)
@pytest.mark.parametrize(("dim", "n", "degree"), SHAPES[:-1])
def test_exact_to_the_promised_precision(dim: int, n: int, degree: int, way: Map) -> None:
    assert max(_errors(dim, n, degree, way)) < PROMISED


@pytest.mark.slow
@pytest.mark.parametrize("way", [ATTAINABLE[3], ATTAINABLE[6]] if FULL else ATTAINABLE[6:], ids=str)
def test_exact_in_61_dimensions(way: Map) -> None:
    """The two hardest of the maps, a quarter of a minute each; CI takes the second."""
    assert max(_errors(61, 4400, 2, way)) < PROMISED


@pytest.mark.parametrize(("dim", "n", "degree"), [SHAPES[1], *SHAPES[3:]])
def test_exact_to_what_badly_rotated_data_allow(dim: int, n: int, degree: int) -> None:
    """At kappa = 1e8 the data know their weak directions to eps kappa = 2e-8, and no better."""
    way = Map(1e8, rotated=True)
    assert max(_errors(dim, n, degree, way)) < EPS * way.condition


@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_as_accurate_as_a_solve_in_fifty_digits(condition: float) -> None:
    """The same least squares on the same floats, without any rounding: hardly better than ours.

    Over five samples, because a single error can be small by luck.
    """
    ours, best = [], []
    for seed in range(5):
        f, sample, exact = _problem(3, 60, 2, Map(condition, rotated=True), seed)
        values = sx.data.integrands(f, sample).values
        size = values.std(axis=(0, 1)) + np.abs(exact)
        fitted = sx.fit(f, sample, sx.Polynomial(2)).intercept
        ours.append(np.abs(fitted - exact) / size)
        solved = _least_squares_in_fifty_digits(sample, values.reshape(60, -1))
        best.append(np.abs(solved - exact) / size)
    assert np.max(ours) < 10 * np.max(best) + 10 * EPS


def _least_squares_in_fifty_digits(sample: sx.Sample, values: np.ndarray) -> np.ndarray:
    """The intercepts of f on 1, s_i and s_i x_j + s_j x_i + 2 (i = j)."""
    with mpmath.workdps(50):
        rows = []
        for draw, score in zip(sample.x.tolist(), sample.score.tolist(), strict=True):
            x, s = [mpmath.mpf(a) for a in draw], [mpmath.mpf(a) for a in score]
            upper = [(i, j) for i in range(len(x)) for j in range(i, len(x))]
            rows.append([1, *s, *(x[i] * s[j] + x[j] * s[i] + 2 * (i == j) for i, j in upper)])
        columns, f = mpmath.matrix(rows), mpmath.matrix(values.tolist())
        gram = columns.T * columns
        each = [mpmath.lu_solve(gram, columns.T * f[:, k])[0] for k in range(f.cols)]
    return np.array([float(one) for one in each])


def test_error_bar_of_an_exact_answer_is_a_floor_and_not_zero() -> None:
    f, sample, exact = _problem(10, 200, 2, Map())
    found = sx.estimate(f, sample, sx.Polynomial(2))
    assert np.all(found.mcse > 0)
    assert np.all(found.mcse < 1e-12)
    assert np.all(np.abs(found.value - exact) < 10 * found.mcse)
