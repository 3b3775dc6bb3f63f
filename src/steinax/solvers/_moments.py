"""Centred moments of columns and integrands: they merge, so draws may come in blocks.

NumPy, not jax: on a CPU its product of a matrix with its own transpose is up to twice as fast.
"""

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """How many draws, the means of columns (p,) and integrands (k,), and their centred products."""

    n: int
    mean: np.ndarray
    mean_f: np.ndarray
    gram: np.ndarray  # (p, p)
    cross: np.ndarray  # (p, k)

    def merge(self, other: "Moments") -> "Moments":
        """The moments of both sets of draws together."""
        return self._combine(other, 1)

    def without(self, part: "Moments") -> "Moments":
        """The moments of the draws that are left when those of `part` are taken away."""
        return self._combine(part, -1)

    def _combine(self, other: "Moments", sign: int) -> "Moments":
        n = self.n + sign * other.n
        step, step_f = other.mean - self.mean, other.mean_f - self.mean_f
        share = sign * other.n / n
        weight = share * self.n  # of the products of what lies between the two means
        return Moments(
            n,
            self.mean + share * step,
            self.mean_f + share * step_f,
            self.gram + sign * other.gram + weight * np.outer(step, step),
            self.cross + sign * other.cross + weight * np.outer(step, step_f),
        )

    def solve(self, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least squares with a quadratic penalty: intercepts (k,) and coefficients (p, k)."""
        hessian = self.gram + penalty
        size = np.sqrt(np.diag(hessian))
        size = np.where(size > 0, size, 1.0)
        scaled = hessian / np.outer(size, size)
        scaled[np.diag_indices_from(scaled)] += 8 * np.finfo(float).eps * len(size)
        w = np.linalg.solve(scaled, self.cross / size[:, None]) / size[:, None]
        return self.mean_f - self.mean @ w, w


def moments(columns: np.ndarray, f: np.ndarray) -> Moments:
    """The moments of one block of draws: columns (n, p) and integrands (n, k).

    >>> import numpy as np
    >>> a, f = np.arange(8.0).reshape(4, 2), np.ones((4, 1))
    >>> whole, halves = moments(a, f), moments(a[:2], f[:2]).merge(moments(a[2:], f[2:]))
    >>> np.allclose(whole.gram, halves.gram)
    True
    """
    mean, mean_f = columns.mean(axis=0), f.mean(axis=0)
    centred = columns - mean
    return Moments(len(columns), mean, mean_f, centred.T @ centred, centred.T @ (f - mean_f))
