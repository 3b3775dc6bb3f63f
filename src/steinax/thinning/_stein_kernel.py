"""The Stein kernel of a discrepancy, and the coordinates in which distances are taken."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import OtherPoints, Point, Points
from ..data import AffineMap, Sample, Stream
from ..data._affine import check_moves
from ..families import KernelTranslates
from ..kernels import AbstractKernel, InverseMultiquadric, resolve
from ..operators import Langevin

type Scored = tuple[Points, Points]  # points and their scores


class SteinKernel(eqx.Module):
    r"""A Stein kernel $k_0$ in the coordinates of an affine map."""

    kernel: AbstractKernel
    coordinates: AffineMap

    def scored(self, sample: Sample) -> Scored:
        """All draws of a sample and their scores, in these coordinates, in double precision."""
        x, score = self.coordinates(sample.x.astype(np.float64), sample.score.astype(np.float64))
        return jnp.asarray(x), jnp.asarray(score)

    def matrix(self, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints) -> jax.Array:
        """The matrix of $k_0(x_i, y_j)$, (n, m)."""
        return KernelTranslates(self.kernel).cross_gram(None, x, score_x, y, score_y)

    def to(self, x: Points, score_x: Points, y: Point, score_y: Point) -> jax.Array:
        """All $k_0(x_i, y)$, (n,)."""
        return jax.vmap(lambda x, s: self._pair(x, s, y, score_y))(x, score_x)

    def own(self, x: Points, score: Points) -> jax.Array:
        """All $k_0(x_i, x_i)$, (n,)."""
        return jax.vmap(lambda x, s: self._pair(x, s, x, s))(x, score)

    def _pair(self, x: Point, score_x: Point, y: Point, score_y: Point) -> jax.Array:
        return self.kernel.stein(Langevin(), x, score_x, y, score_y)


def stein_kernel(
    sample: Sample, kernel: AbstractKernel | None, standardise: bool | AffineMap = True
) -> SteinKernel:
    """The kernel of a sample: heuristics become numbers, and each coordinate has its own unit.

    Args:
        sample: the draws that the units and the heuristics are found from.
        kernel: an inverse multiquadric of length-scale 1 by default.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map.
    """
    _check(sample, kernel)
    x = sample.x.astype(np.float64)
    if isinstance(standardise, AffineMap):  # which jax may have made in single precision
        shift, scale = standardise.shift, standardise.scale
    else:
        shift, scale = x.mean(axis=0), _units(sample, x) if standardise else np.ones_like(x[0])
    coordinates = AffineMap(np.asarray(shift, np.float64), np.asarray(scale, np.float64))
    kernel = InverseMultiquadric(1.0) if kernel is None else kernel
    return SteinKernel(resolve(kernel, coordinates(x, x)[0]), coordinates)


def _units(sample: Sample, x: np.ndarray) -> np.ndarray:
    """Mean absolute deviations, (dim,)."""
    check_moves(sample)
    return np.abs(x - x.mean(axis=0)).mean(axis=0)


def _check(sample: object, kernel: object) -> None:
    if isinstance(sample, Stream):
        raise TypeError(
            "every pair of draws counts here, so they must be in memory: give a Sample, of every tenth "
            "draw perhaps."
        )
    if not isinstance(sample, Sample):
        raise TypeError(
            f"the sample is of type {type(sample).__name__}: give a Sample(draws, scores)."
        )
    if sample.space is not None:
        raise NotImplementedError(
            "the kernels of a discrepancy know no boundary: give draws and scores on the unconstrained "
            "space, in a Sample without a space."
        )
    if not (kernel is None or isinstance(kernel, AbstractKernel)):
        raise TypeError(
            f"the kernel is {kernel!r}: give one of steinax.kernels, such as InverseMultiquadric(1.0)."
        )
