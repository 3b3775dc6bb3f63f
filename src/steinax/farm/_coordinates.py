"""Draws and scores of many posteriors in standardised and in whitened coordinates."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._types import AnyArray

type Rows = Float[AnyArray, "posterior dim n"]

CORRELATED = 1e-3  # the least part of a dimension that the others must leave to it


class Coordinates(NamedTuple):
    """The names are those of `steinax.auditing`: see there for what they are."""

    y: Rows  # standardised draws
    u: Rows  # their scores times the covariance
    z: Rows  # whitened draws
    t: Rows  # their scores
    sound: Bool[AnyArray, " posterior"]  # whether no dimension is nearly a combination of others


def coordinates(draws: Rows, scores: Rows) -> Coordinates:
    r"""Standardise and whiten the draws of each posterior, and carry the scores along.

    With $y$ the draws less their means over their standard deviations and $L L^\top$ their
    correlations, $z = L^{-1} y$ has the scores $t = L^\top (\sigma s)$.
    """
    dim, n = draws.shape[1:]
    y = draws - draws.mean(axis=2, keepdims=True)
    scale = np.sqrt(np.einsum("bdn,bdn->bd", y, y) / (n - 1))[..., None]
    y /= scale
    t = scores * scale
    if dim == 1:
        return Coordinates(y, t, y, t, np.ones(len(y), dtype=bool))
    root, sound = cholesky(y @ y.swapaxes(1, 2) / (n - 1), CORRELATED)
    t = root.swapaxes(1, 2) @ t
    return Coordinates(y, root @ t, np.linalg.inv(root) @ y, t, sound)


def cholesky(
    matrices: Float[AnyArray, "*batch p p"], least: float
) -> tuple[AnyArray, Bool[AnyArray, "*batch"]]:
    """Cholesky factors of matrices of unit diagonal, and which of them are to be trusted.

    A factor whose smallest diagonal entry is below `least` has lost too many digits. The identity
    stands for it, and for that of a matrix that has none.

    >>> factors, sound = cholesky(np.stack([np.eye(2), np.ones((2, 2))]), 1e-3)
    >>> sound.tolist()
    [True, False]
    """
    try:
        factors = np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        each = matrices.reshape(-1, *matrices.shape[-2:])
        factors = np.stack([_factor(one) for one in each]).reshape(matrices.shape)
    sound = np.einsum("...ii->...i", factors).min(axis=-1) > least  # false for what is no number
    return np.where(sound[..., None, None], factors, np.eye(matrices.shape[-1])), sound


def _factor(matrix: AnyArray) -> AnyArray:
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
