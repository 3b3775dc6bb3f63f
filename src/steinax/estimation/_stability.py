"""How far a fit moves when draws are left out of it."""

import numpy as np

from .._types import AnyArray, Values
from ..solvers import Folds


def moves(rest: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""How the fits that leave out one fold each move, beyond what averages do: (..., fold, k).

    The intercept $c_B$ of the fit without fold $B$ estimates $E f$ too. If the control variate hardly
    depended on single draws, leaving out $B$ would move it by $-h_B$ with $h_B = \frac{n_B}{n}
    (\bar r_B - c_B)$, where $\bar r_B$ is the mean of $f - g$ on $B$, and the standard error of that
    series would tell all. A fit that nearly interpolates depends on the few draws far from the
    others. Then the series is small on all draws that were seen, and what it moves by,

    $$ u_B = c_B - \bar c + h_B - \bar h , $$

    is not. As in the jackknife, $\sum_B u_B^2$ is the variance that this adds to the estimate.

    Args:
        rest: f - g on every draw, g fitted to the other folds, (..., n, k).
        intercepts: $c_B$, (..., fold, k).
        folds: where each starts and stops.
    """
    rest = np.asarray(rest, np.float64)
    start, stop = np.array(folds).T
    means = np.add.reduceat(rest, start, axis=-2) / (stop - start)[:, None]
    return moves_of_means(means, intercepts, folds)


def moves_of_means(means: AnyArray, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""The same from the means $\bar r_B$ of $f - g$ on each fold, (..., fold, k)."""
    start, stop = np.array(folds).T
    share = ((stop - start) / stop[-1])[:, None]
    intercepts = np.asarray(intercepts, np.float64)
    moved = intercepts + share * (means - intercepts)
    return moved - moved.mean(axis=-2, keepdims=True)


def instability(rest: Values, intercepts: AnyArray, folds: Folds) -> np.ndarray:
    r"""The variance $\sum_B u_B^2$ that the fits' moves add to the estimate, (k,)."""
    return (moves(rest, intercepts, folds) ** 2).sum(axis=0)
