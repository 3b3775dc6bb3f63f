"""The kernel Stein discrepancy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._precision import precision
from .._progress import progress
from .._types import OtherPoints, Point, Points
from ..data import AffineMap, Sample, Stream
from ..data._coordinates import check_moves
from ..data._sample import as_reals
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


BLOCK = 1000  # rows and columns of the kernel matrix that are in memory at a time


def ksd(
    sample: Sample,
    kernel: AbstractKernel | None = None,
    weights: ArrayLike | None = None,
    *,
    like: Sample | None = None,
    standardise: bool | AffineMap = True,
    unbiased: bool = False,
) -> float:
    r"""The kernel Stein discrepancy between a sample and the target of its scores.

    $$ D = \Bigl(\sum_{i,j} w_i w_j\, k_0(x_i, x_j)\Bigr)^{1/2}, \qquad \sum_i w_i = 1 , $$

    is the largest error of the weighted average of any function in the unit ball of the Stein kernel's
    space. It is about $\sqrt{E\, k_0(x, x) / n}$ for $n$ independent draws of the target, and stays away from
    zero where draws are not of the target. Nothing but scores is asked of it. All pairs are summed,
    in blocks: time grows as $n^2$, memory as $n$.

    Args:
        sample: the draws $x_i$ and their scores. Its importance weights are $w_i$, if it has any.
        kernel: $k$; the inverse multiquadric $(1 + \|x - y\|^2)^{-1/2}$ by default.
        weights: $w_i$ up to a factor, of any sign, one for each draw, in place of the sample's.
        like: the sample by whose spread coordinates, and length-scales to be found, are measured; this
            one by default. Discrepancies are comparable only if it is the same for all of them.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map to other
            coordinates, such as `steinax.data.standardise(sample.x)`, in which none are correlated.
        unbiased: leave out the pairs $i = j$ and divide by $1 - \sum_i w_i^2$. For independent draws
            the square is then unbiased, and may be negative: the root is given its sign.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> round(sx.ksd(sx.Sample(x, -x)), 3), round(sx.ksd(sx.Sample(x, 1 - x)), 3)
    (0.045, 0.801)
    """
    with precision(np.float64), progress("summing over all pairs of draws"):
        stein = stein_kernel(sample if like is None else like, kernel, standardise)
        if stein.coordinates.shift.shape != (sample.dim,):
            raise ValueError(
                f"`like` has {stein.coordinates.shift.shape[0]} dimensions and the sample {sample.dim}: give "
                "samples of one target."
            )
        w = _normalised(sample, weights)
        total, diagonal = _quadratic(stein, sample, w)
    if not unbiased:
        return float(np.sqrt(max(total, 0.0)))
    if sample.size == 1:
        raise ValueError("one draw has no pairs: give two or more, or leave out unbiased.")
    square = (total - diagonal) / (1 - float(w @ w))
    return float(np.sign(square) * np.sqrt(abs(square)))


def _normalised(sample: Sample, weights: ArrayLike | None) -> np.ndarray:
    """Weights that sum to one, (n,)."""
    given = sample.weights if weights is None else as_reals(weights, "weights")
    w = np.ones(sample.size) if given is None else np.asarray(given, np.float64).reshape(-1)
    if w.shape != (sample.size,) or not np.isfinite(w).all() or w.sum() <= 0:
        raise ValueError(
            f"{w.size} weights for {sample.size} draws: give one finite number for each draw, whose sum is "
            "positive."
        )
    return w / w.sum()


def _quadratic(stein: SteinKernel, sample: Sample, w: np.ndarray) -> tuple[float, float]:
    """The sum of $w_i w_j k_0(x_i, x_j)$ over all pairs, and over those of one draw with itself."""
    rows = min(BLOCK, sample.size)
    blocks = -(-sample.size // rows)
    parts = [
        jnp.pad(one, [(0, blocks * rows - sample.size)] + [(0, 0)] * (one.ndim - 1))
        for one in (*stein.scored(sample), jnp.asarray(w))
    ]
    cut = [tuple(one[i * rows : (i + 1) * rows] for one in parts) for i in range(blocks)]
    # each pair of blocks once: the matrix is symmetric
    sums = [
        (1 if i == j else 2) * _block(stein, cut[i], cut[j])
        for i in range(blocks)
        for j in range(i + 1)
    ]
    return float(sum(map(float, sums))), float(sum(float(_diagonal(stein, one)) for one in cut))


@eqx.filter_jit
def _block(stein: SteinKernel, left: tuple, right: tuple) -> jax.Array:
    return left[2] @ stein.matrix(*left[:2], *right[:2]) @ right[2]


@eqx.filter_jit
def _diagonal(stein: SteinKernel, block: tuple) -> jax.Array:
    x, score, w = block
    return jnp.sum(w**2 * stein.own(x, score))
