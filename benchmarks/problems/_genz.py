"""The six families of Genz on the unit cube, each integral in closed form.

`genz()` has draws x = logit(u) with u uniform, so that the target is three independent logistic
variables.
"""

from collections.abc import Callable
from itertools import product
from math import factorial

import numpy as np
from scipy.special import erf

from ._problem import Array, Integrand, Problem

DIM = 3
W = np.array([0.3, 0.5, 0.7])  # where peaks and kinks are
A = np.array([1.0, 0.8, 0.6])  # how hard each direction is, times a family's own factor

type Family = Callable[[Array, Array], tuple[Callable[[Array], Array], float]]


def genz() -> Problem:
    """All six, in the order of Genz."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        u = rng.random((n, DIM))
        return np.log(u) - np.log1p(-u)

    hardness = {"product peak": 4 * A, "corner peak": 0.8 * A}
    places = {"discontinuous": np.array([W[0], W[1], 1.0])}
    integrands = []
    for name, family in GENZ.items():
        h, mean = family(hardness.get(name, 3 * A), places.get(name, W))
        integrands.append(Integrand(name, lambda x, h=h: h(_cube(x)), mean))
    return Problem("Genz", DIM, draw, lambda x: 1 - 2 * _cube(x), tuple(integrands))


def _cube(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _oscillatory(a: Array, w: Array):
    wave = np.exp(2j * np.pi * w[0]) * np.prod((np.exp(1j * a) - 1) / (1j * a))
    return lambda u: np.cos(2 * np.pi * w[0] + u @ a), float(wave.real)


def _product_peak(a: Array, w: Array):
    mean = np.prod(a * (np.arctan(a * (1 - w)) + np.arctan(a * w)))
    return lambda u: np.prod(1 / (a**-2.0 + (u - w) ** 2), -1), float(mean)


def _corner_peak(a: Array, w: Array):
    dim = len(a)
    corners = sum((-1) ** sum(s) / (1 + np.dot(s, a)) for s in product((0, 1), repeat=dim))
    return lambda u: (1 + u @ a) ** -(dim + 1.0), float(corners / (factorial(dim) * np.prod(a)))


def _gaussian_peak(a: Array, w: Array):
    mean = np.prod(np.sqrt(np.pi) / (2 * a) * (erf(a * (1 - w)) + erf(a * w)))
    return lambda u: np.exp(-((a * (u - w)) ** 2).sum(-1)), float(mean)


def _continuous(a: Array, w: Array):
    mean = np.prod((2 - np.exp(-a * w) - np.exp(-a * (1 - w))) / a)
    return lambda u: np.exp(-np.abs(u - w) @ a), float(mean)


def _discontinuous(a: Array, w: Array):
    mean = np.prod((np.exp(a * w) - 1) / a)
    return lambda u: np.exp(u @ a) * (u < w).all(-1), float(mean)


# by name: the function on the cube and its integral, given the hardness `a` and the place `w`
GENZ: dict[str, Family] = {
    "oscillatory": _oscillatory,
    "product peak": _product_peak,
    "corner peak": _corner_peak,
    "Gaussian peak": _gaussian_peak,
    "continuous": _continuous,
    "discontinuous": _discontinuous,
}
