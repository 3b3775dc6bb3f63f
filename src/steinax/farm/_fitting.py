"""Cross-fitted polynomials of many posteriors at once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._types import AnyArray
from ..solvers import Folds
from ._coordinates import Coordinates, cholesky

DEPENDENT = 1e-5  # the least part of a column that the others must leave to it
LEVERAGE = 1e-3  # the same on all folds but one, of columns that are orthogonal on all


class LeftOut(NamedTuple):
    """What leaving out each fold in turn gives."""

    rest: Float[AnyArray, "posterior k n"]  # f - g, g fitted to the other folds
    intercepts: Float[AnyArray, "posterior fold k"]
    sound: Bool[AnyArray, " posterior"]  # whether no column is nearly a combination of others


def features(at: Coordinates, degree: int) -> Float[AnyArray, "posterior p n"]:
    """The columns of `Polynomial(degree)`, 1 or 2, up to their sizes, and ones after them."""
    posteriors, dim, n = at.t.shape
    squares = dim * (dim + 1) // 2 if degree == 2 else 0
    columns = np.empty((posteriors, dim + squares + 1, n))
    columns[:, :dim] = at.t
    columns[:, -1] = 1.0
    row = dim
    for i in range(dim if degree == 2 else 0):
        block = columns[:, row : row + dim - i]
        np.multiply(at.z[:, i, None], at.t[:, i:], out=block)
        block += at.z[:, i:] * at.t[:, i, None]
        block[:, 0] += 2.0
        row += dim - i
    return columns


def cross_fit(
    columns: Float[AnyArray, "posterior p n"], f: Float[AnyArray, "posterior k n"], folds: Folds
) -> LeftOut:
    r"""Least squares on all folds but one, in turn, and what it leaves of f on that one.

    The columns $A$ are made orthogonal on all draws first, $A = L Q$ with $L L^\top = A A^\top$. Then
    the moments of the fold $B$ are subtracted, and $(Q Q^\top - Q_B Q_B^\top) w = Q f - Q_B f_B$ is
    as well conditioned as the fold is like the others, whatever the columns were. The last of them
    are the ones, so that $w_p / L_{pp}$ is the intercept.
    """
    gram = columns @ columns.swapaxes(1, 2)
    size = np.sqrt(np.einsum("bii->bi", gram))
    size = np.where(size > 0, size, 1.0)
    root, sound = cholesky(gram / (size[:, :, None] * size[:, None]), DEPENDENT)
    basis = (np.linalg.inv(root) / size[:, None]) @ columns
    centre = f.mean(axis=2, keepdims=True)
    rest = f - centre
    parts = [slice(start, stop) for start, stop in folds]
    moments = np.stack([_gram(basis[..., part]) for part in parts], axis=1)
    cross = np.stack([_cross(basis[..., part], rest[..., part]) for part in parts], axis=1)
    left = moments.sum(axis=1, keepdims=True) - moments
    _, balanced = cholesky(left, LEVERAGE)
    sound &= balanced.all(axis=1)
    left[~sound] = np.eye(left.shape[-1])
    w = np.linalg.solve(left, cross.sum(axis=1, keepdims=True) - cross)
    intercepts = w[:, :, -1] / (root[:, -1, -1] * size[:, -1])[:, None, None]
    for i, part in enumerate(parts):
        rest[..., part] -= w[:, i].swapaxes(1, 2) @ basis[..., part] - intercepts[:, i, :, None]
    return LeftOut(rest + centre, intercepts + centre.swapaxes(1, 2), sound)


def _gram(block: AnyArray) -> AnyArray:
    return block @ block.swapaxes(1, 2)


def _cross(block: AnyArray, f: AnyArray) -> AnyArray:
    return block @ f.swapaxes(1, 2)
