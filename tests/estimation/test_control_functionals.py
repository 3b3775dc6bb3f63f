r"""Control functionals, plain and semi-exact, against an independent solve in fifty digits.

The Stein kernel is built here from the gradients of the kernel and the system

$$ (K + m \lambda) \alpha + 1 c + B \beta = f, \quad 1^\top \alpha = 0, \quad B^\top \alpha = 0 $$

is solved by mpmath: nothing of steinax is used but the standardised coordinates.
"""

from collections.abc import Callable

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import steinax as sx
import targets
from steinax._numerics import precision
from steinax.solvers import prepare

DIM, N, STRENGTH = 2, 28, 1e-10
AGREE = 1e-8


def _rational_quadratic(q):
    """(1 + q / 2 a l^2)^-a and two derivatives, with a = 2 and l = 1.5."""
    rate = 1 / (2 * mpmath.mpf(2) * mpmath.mpf("2.25"))
    base = 1 + rate * q
    return base**-2, -2 * rate * base**-3, 6 * rate**2 * base**-4


def _squared_exponential(q):
    rate = -1 / (2 * mpmath.mpf("0.64"))
    value = mpmath.exp(rate * q)
    return value, rate * value, rate**2 * value


def _matern52(q):
    """(1 + t + t^2 / 3) e^-t with t = sqrt(5 q) / l and l = 1.5."""
    rate = 5 / mpmath.mpf("2.25")
    t = mpmath.sqrt(rate * q)
    decay = mpmath.exp(-t)
    return (1 + t + t**2 / 3) * decay, -rate * (1 + t) * decay / 6, rate**2 * decay / 12


KERNELS: dict[str, tuple[sx.kernels.AbstractKernel, Callable]] = {
    "rational quadratic": (sx.kernels.RationalQuadratic(1.5, 2.0), _rational_quadratic),
    "squared exponential": (sx.kernels.SquaredExponential(0.8), _squared_exponential),
    "Matern 5/2": (sx.kernels.Matern52(1.5), _matern52),
}


def _stein(profile: Callable, x: list, s: list, y: list, t: list):
    r"""div_x div_y k + grad_x k . t + grad_y k . s + k s . t."""
    gap = [a - b for a, b in zip(x, y, strict=True)]
    q = sum(a * a for a in gap)
    phi, phi1, phi2 = profile(q)
    along = sum(a * (v - u) for a, u, v in zip(gap, s, t, strict=True))
    both = sum(u * v for u, v in zip(s, t, strict=True))
    return -4 * phi2 * q - 2 * len(x) * phi1 + 2 * phi1 * along + phi * both


def _quadratics(x: list, s: list) -> list:
    upper = [(i, j) for i in range(len(x)) for j in range(i, len(x))]
    return [*s, *(x[i] * s[j] + x[j] * s[i] + 2 * (i == j) for i, j in upper)]


def _solve(profile, points: list, f: np.ndarray, semi_exact: bool) -> tuple[np.ndarray, ...]:
    """The intercepts, and g on the draws."""
    n = len(points)
    kernel = mpmath.matrix(n, n)
    for i, one in enumerate(points):
        for j, other in enumerate(points):
            kernel[i, j] = _stein(profile, *one, *other)
    free = [[mpmath.mpf(1), *(_quadratics(*one) if semi_exact else [])] for one in points]
    width = len(free[0])
    system = mpmath.zeros(n + width)
    system[:n, :n] = kernel + n * mpmath.mpf(STRENGTH) * mpmath.eye(n)
    system[:n, n:], system[n:, :n] = mpmath.matrix(free), mpmath.matrix(free).T
    intercepts, values = [], []
    for column in f.T.tolist():
        solved = mpmath.lu_solve(system, mpmath.matrix([*column, *[0] * width]))
        fitted = (
            kernel * solved[:n] + mpmath.matrix(free) * solved[n:] - solved[n] * mpmath.ones(n, 1)
        )
        intercepts.append(float(solved[n]))
        values.append([float(value) for value in fitted])
    return np.array(intercepts), np.array(values).T


@pytest.mark.slow
@pytest.mark.parametrize("semi_exact", [False, True], ids=["plain", "semi-exact"])
@pytest.mark.parametrize("name", KERNELS)
def test_agrees_with_fifty_digits(name: str, semi_exact: bool) -> None:
    kernel, profile = KERNELS[name]
    sample = targets.banana(DIM).sample(3, chains=4, length=N // 4)
    family, penalty = sx.KernelTranslates(kernel), [sx.NativeNorm(STRENGTH)]
    if semi_exact:
        family, penalty = sx.Polynomial(2) + family, [sx.NoPenalty(), *penalty]
    f = {"sine": lambda x: jnp.sin(x[0] + x[1]), "square": lambda x: x[1] ** 2 + 5}
    fitted = sx.fit(f, sample, family, penalty=penalty)
    with precision(np.float64):
        problem, _ = prepare(sx.data.integrands(f, sample), sample, family, penalty, None)
    points = [
        ([mpmath.mpf(a) for a in x], [mpmath.mpf(a) for a in s])
        for x, s in zip(problem.x.tolist(), problem.score.tolist(), strict=True)
    ]
    with mpmath.workdps(50):
        intercept, values = _solve(profile, points, np.asarray(problem.f), semi_exact)
    np.testing.assert_allclose(fitted.intercept, intercept, rtol=0, atol=AGREE)
    found = fitted(sample.x, sample.score)
    np.testing.assert_allclose(found, values, rtol=0, atol=AGREE)
