import equinox as eqx
import jax
import numpy as np

from .._precision import precision
from .._progress import progress
from .._types import Points
from ..data import AffineMap, Sample
from ..kernels import AbstractKernel
from ._greedy import select
from ._interpolant import least_weights, root
from ._stein_kernel import SteinKernel, stein_kernel
from ._thinned import Thinned


def thin(
    sample: Sample,
    m: int,
    kernel: AbstractKernel | None = None,
    *,
    standardise: bool | AffineMap = True,
    nonnegative: bool = False,
) -> Thinned:
    r"""Choose m draws that stand for all: Stein thinning (Riabiz et al., 2022).

    One after the other, the draw is chosen that makes the discrepancy `ksd` of those chosen least; a
    draw may be chosen again. The scores say where the target is, so draws of a warm-up or of a chain that is
    slightly wrong are passed over. Cost: $n m$ values of the kernel, and $n$ numbers of memory.

    The chosen draws get weights as well, those with the least

    $$ w^\top K_0 w, \qquad \sum_j w_j = 1 . $$

    Args:
        sample: the draws and scores to choose from. Importance weights do not matter: scores do.
        m: how many to choose.
        kernel: $k$; the inverse multiquadric $(1 + \|x - y\|^2)^{-1/2}$ by default.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map to other
            coordinates, such as `steinax.data.standardise(sample.x)`, in which none are correlated.
        nonnegative: whether to allow no negative weights, at the price of a larger discrepancy.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> thinned = sx.thin(sx.Sample(x, -x), 20)
    >>> thinned
    Thinned(20 of 1000 draws, ksd 0.187, weighted 0.172)
    >>> thinned.average("x").shape
    (2,)
    """
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise ValueError(f"m={m!r} draws: give a whole number of at least 1.")
    with precision(np.float64), progress("choosing draws"):
        stein = stein_kernel(sample, kernel, standardise)
        x, score = stein.scored(sample)
        chosen, discrepancy = (np.asarray(one) for one in select(stein, x, score, int(m)))
        matrix = np.asarray(_matrix(stein, x[chosen], score[chosen]))
    _, first, place, copies = np.unique(
        chosen, return_index=True, return_inverse=True, return_counts=True
    )
    factor = root(matrix[np.ix_(first, first)])
    weights = least_weights(factor, nonnegative)
    each = (weights / copies)[place]  # what a draw gets is shared by its copies
    return Thinned(chosen, discrepancy, each, sample, stein, factor)


@eqx.filter_jit
def _matrix(stein: SteinKernel, x: Points, score: Points) -> jax.Array:
    return stein.matrix(x, score, x, score)
