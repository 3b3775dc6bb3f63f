import numpy as np
from jaxtyping import Bool, Float

from .._types import AnyArray

LIMIT = 1.0 / 3.0  # above it the third moment is infinite, and standard errors converge slowly
PRIOR_K, PRIOR_DRAWS, PRIOR_SCALE = 0.5, 10, 3  # the weak prior of Vehtari et al. (2024)
TIES = 1e-12


def pareto_khat(columns: Float[AnyArray, "n p"]) -> Float[AnyArray, " p"]:
    r"""The tail index $\hat k$ of each column: moments beyond the order $1/k$ are infinite.

    A generalised Pareto distribution is fitted to the largest $\min(n/5, 3\sqrt n)$ of
    $|x - \operatorname{median}(x)|$ by the method of Zhang and Stephens (2009) with the weak prior
    of Vehtari et al. (2024), the same numbers as arviz-stats gives for such a tail. Both tails
    are one here: a column is as heavy as its heavier side. NaN for a tail of fewer than five draws,
    and for one whose values are all the same.

    Args:
        columns: shape (n, p).

    >>> draws = np.random.default_rng(0).standard_t(2, size=(1000, 1))
    >>> pareto_khat(np.hstack([draws, np.tanh(draws)])).round(1).tolist()
    [0.5, -2.1]
    """
    excess = _tail(np.asarray(columns, dtype=np.float64))
    p, m = excess.shape
    if m < 5:
        return np.full(p, np.nan)
    grid = 30 + int(m**0.5)
    quartile = excess[:, int(m / 4 + 0.5) - 1]
    usable = quartile > np.maximum(excess[:, 0], TIES * excess[:, -1])
    excess = np.where(usable[:, None], excess, 1.0 + np.arange(m))
    quartile = np.where(usable, quartile, 2.0)
    steps = 1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = steps[:, None] / (PRIOR_SCALE * quartile) + 1.0 / excess[:, -1]
    k = _mean_log(b, excess)
    log_weight = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    weight = np.where(weight >= 10 * np.finfo(np.float64).eps, weight, 0.0)
    b = (b * weight).sum(axis=0) / weight.sum(axis=0)
    k = _mean_log(b[None], excess)[0]
    k = (m * k + PRIOR_DRAWS * PRIOR_K) / (m + PRIOR_DRAWS)
    return np.where(usable, k, np.nan)


def heavy(columns: Float[AnyArray, "n p"], errors: float = 2.0) -> Bool[AnyArray, " p"]:
    r"""Which columns are surely heavy-tailed: $\hat k$ above 1/3 by two of its standard errors.

    The standard error is $(1 + \hat k) / \sqrt M$ for a tail of $M$ draws. Without it, light columns
    are flagged by chance: at 100 draws the tail has 20, and the standard error is 0.3. A column that
    is constant is not heavy.

    Args:
        columns: shape (n, p).
        errors: by how many standard errors; with 0 no column above the limit is left unflagged.

    >>> draws = np.random.default_rng(0).normal(size=(1000, 1))
    >>> heavy(np.hstack([draws, np.exp(3 * draws)])).tolist()
    [False, True]
    """
    k = pareto_khat(columns)
    error = (1.0 + k) / np.sqrt(max(tail_length(len(columns)), 1))
    return np.nan_to_num(k - errors * error, nan=-1.0) > LIMIT


def tail_length(n: int) -> int:
    """How many of n draws make the tail."""
    return int(np.ceil(min(n / 5.0, 3.0 * np.sqrt(n))))


def _tail(columns: AnyArray) -> AnyArray:
    """By how much the largest deviations from the median exceed the next one: (p, m), sorted."""
    n = len(columns)
    m = min(tail_length(n), n - 1)
    rows = np.sort(columns.T, axis=1)
    middle = 0.5 * (rows[:, (n - 1) // 2] + rows[:, n // 2])
    largest = np.sort(np.abs(rows - middle[:, None]), axis=1)[:, n - m - 1 :]
    return largest[:, 1:] - largest[:, :1]


def _mean_log(b: AnyArray, excess: AnyArray) -> AnyArray:
    """The mean of log(1 - b x) over each tail for each b of the grid: (grid, p)."""
    out, work = np.empty_like(b), np.empty_like(excess)
    for row, mean in zip(b, out, strict=True):
        np.multiply(excess, -row[:, None], out=work)
        work += 1.0
        np.log(work, out=work).mean(axis=1, out=mean)
    return out
