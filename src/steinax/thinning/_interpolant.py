"""What some draws say of all: weights of least discrepancy, and the control functional behind them."""

import numpy as np

from .._types import AnyArray

NUGGETS = 10.0 ** np.arange(-12, 0, 2)  # of the mean of the diagonal, the first that does


def root(matrix: AnyArray) -> np.ndarray:
    """The lower Cholesky factor of a kernel matrix, and of no more of the identity than it needs."""
    matrix = np.asarray(matrix, np.float64)
    unit = np.diag(matrix).mean() * np.eye(len(matrix))
    for nugget in NUGGETS:
        try:
            return np.linalg.cholesky(matrix + nugget * unit)
        except np.linalg.LinAlgError:
            continue
    raise ValueError(
        "the Stein kernel's matrix on the thinned draws is not positive: look at the scores, with "
        "audit(sample)."
    )


def solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a system by its Cholesky factor."""
    return np.linalg.solve(factor.T, np.linalg.solve(factor, right))


def least_weights(factor: np.ndarray, nonnegative: bool) -> np.ndarray:
    r"""The weights of sum 1 with the least $w^\top K w$, $K^{-1} 1 / 1^\top K^{-1} 1$ if signs are free.

    Without negative ones they are the minimum of $v^\top K v / 2 - 1^\top v$ over $v \ge 0$, divided by
    its sum: non-negative least squares with the transposed factor.
    """
    ones = np.ones(len(factor))
    if nonnegative:
        from scipy.optimize import nnls  # jax needs SciPy, so it is there

        v = nnls(factor.T, np.linalg.solve(factor, ones), maxiter=100 * len(factor))[0]
    else:
        v = solve(factor, ones)
    return v / v.sum()
