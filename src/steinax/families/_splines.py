"""Cubic B-splines and the wavelets made of them, along one coordinate."""

from functools import cache
from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray

ORDER = 4  # cubic: two continuous derivatives
SUPPORT = 2 * ORDER - 1  # of a wavelet, in cells of its level


def bspline(t: AnyArray) -> jax.Array:
    """The cardinal cubic B-spline on [0, 4], from the nearer end, where nothing cancels."""
    r = jnp.where(t < 2, t, 4 - t)
    return (jnp.maximum(r, 0.0) ** 3 - 4 * jnp.maximum(r - 1, 0.0) ** 3) / 6


@cache
def two_scale() -> np.ndarray:
    r"""The $q_n$ of the wavelet $\psi(t) = \sum_n q_n N_4(2t - n)$ of Chui and Wang (1992).

    $q_n = (-1)^n 2^{1-m} \sum_l \binom{m}{l} N_{2m}(n - l + 1)$ with $m = 4$, over n from 0 to $3m - 2$.
    """
    m = ORDER
    terms = [
        sum(comb(m, j) * _at_integer(2 * m, n - j + 1) for j in range(m + 1))
        for n in range(3 * m - 1)
    ]
    return np.array([(-1) ** n * term / 2 ** (m - 1) for n, term in enumerate(terms)])


def _at_integer(m: int, n: int) -> float:
    """The cardinal B-spline of order m at an integer; in integers until the last division."""
    powers = sum((-1) ** j * comb(m, j) * max(n - j, 0) ** (m - 1) for j in range(m + 1))
    return powers / factorial(m - 1)


@cache
def _refinement(cells: int) -> np.ndarray:
    """The wavelets of a level of so many cells, by the splines of the next: (cells, splines)."""
    matrix = np.zeros((cells, 2 * cells + SUPPORT * 2))
    for row in range(cells):
        matrix[row, 2 * row : 2 * row + len(two_scale())] = two_scale()
    return matrix / np.linalg.norm(two_scale())


def hierarchy(t: AnyArray, cells: int, levels: int, decay: float) -> list[jax.Array]:
    r"""Splines of `cells` cells on [0, 1], and wavelets of every level above them, at one number.

    Wavelets are those whose middle lies within, $2^j$ times `cells` of level $j$; with the splines they are
    as many as there are splines of the finest level. Each is multiplied by $2^{-j \cdot decay}$.
    """
    t = cells * t
    found = [bspline(t - jnp.arange(1 - ORDER, cells, dtype=t.dtype))]
    first = -(SUPPORT // 2)
    for j in range(levels):
        count = cells * 2**j
        matrix = _refinement(count)
        shifts = 2 * first + jnp.arange(matrix.shape[1], dtype=t.dtype)
        wavelets = jnp.asarray(matrix, t.dtype) @ bspline(2 ** (j + 1) * t - shifts)
        found.append(2 ** (-decay * (j + 1)) * wavelets)
    return found
