import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._precision import precision
from .._progress import progress
from ..data import AffineMap, Sample
from ..data._arrays import as_reals
from ..kernels import AbstractKernel
from ._stein_kernel import SteinKernel, stein_kernel

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
