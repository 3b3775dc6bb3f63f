"""The six families of Genz on the unit cube, each integral in closed form.

Draws are x = logit(u) with u uniform, so that the target is three independent logistic variables.
"""

from itertools import product
from math import factorial

import numpy as np
from scipy.special import erf

from ._problem import Array, Integrand, Problem

DIM = 3
W = np.array([0.3, 0.5, 0.7])  # where peaks and kinks are
A = np.array([1.0, 0.8, 0.6])  # how hard each direction is, times a family's own factor


def genz() -> Problem:
    """All six, in the order of Genz."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        u = rng.random((n, DIM))
        return np.log(u) - np.log1p(-u)

    return Problem("Genz", DIM, draw, lambda x: 1 - 2 * _cube(x), (*_smooth(), *_rough()))


def _cube(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _smooth() -> tuple[Integrand, ...]:
    a, b, c, e = 3 * A, 4 * A, 0.8 * A, 3 * A
    wave = np.exp(2j * np.pi * W[0]) * np.prod((np.exp(1j * a) - 1) / (1j * a))
    peak = np.prod(b * (np.arctan(b * (1 - W)) + np.arctan(b * W)))
    corners = sum((-1) ** sum(s) / (1 + np.dot(s, c)) for s in product((0, 1), repeat=DIM)) / (
        factorial(DIM) * np.prod(c)
    )
    bell = np.prod(np.sqrt(np.pi) / (2 * e) * (erf(e * (1 - W)) + erf(e * W)))
    return (
        Integrand(
            "oscillatory", lambda x: np.cos(2 * np.pi * W[0] + _cube(x) @ a), float(wave.real)
        ),
        Integrand(
            "product peak", lambda x: np.prod(1 / (b**-2.0 + (_cube(x) - W) ** 2), -1), float(peak)
        ),
        Integrand("corner peak", lambda x: (1 + _cube(x) @ c) ** -(DIM + 1.0), float(corners)),
        Integrand(
            "Gaussian peak", lambda x: np.exp(-((e * (_cube(x) - W)) ** 2).sum(-1)), float(bell)
        ),
    )


def _rough() -> tuple[Integrand, ...]:
    a = 3 * A
    kink = np.prod((2 - np.exp(-a * W) - np.exp(-a * (1 - W))) / a)
    upper = np.array([W[0], W[1], 1.0])
    step = np.prod((np.exp(a * upper) - 1) / a)

    def jump(x: Array) -> Array:
        u = _cube(x)
        return np.exp(u @ a) * (u < upper).all(-1)

    return (
        Integrand("continuous", lambda x: np.exp(-np.abs(_cube(x) - W) @ a), float(kink)),
        Integrand("discontinuous", jump, float(step)),
    )
