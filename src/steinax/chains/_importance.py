import numpy as np
from jaxtyping import Float

from .._types import AnyArray


def linearised(
    series: Float[AnyArray, "*draws k"], weights: Float[AnyArray, "*draws"] | None
) -> np.ndarray:
    r"""Series whose plain averages are weighted ones, and vary as these do.

    The self-normalised average of $r$ with weights $w$ is $c = \sum_i w_i r_i / \sum_i w_i$. The series

    $$ \ell_i = c + \frac{w_i}{\bar w} (r_i - c) $$

    has the mean $c$, and the standard error of its mean, autocorrelation included, is that of $c$ by the
    delta method: the error of a ratio of two averages. Without weights the series is what it was.

    Args:
        series: $r$, the axes of the draws first and the integrands last.
        weights: $w$, one for each draw, of whatever sum.

    >>> linearised(np.array([[1.0], [5.0]]), np.array([1.5, 0.5])).tolist()
    [[0.5], [3.5]]
    """
    series = np.asarray(series)
    if weights is None:
        return series
    share = shares(weights)
    axes = tuple(range(series.ndim - 1))
    centre = (share * series).mean(axis=axes)
    return centre + share * (series - centre)


def shares(weights: Float[AnyArray, "*draws"] | None) -> Float[AnyArray, "*axes 1"]:
    """Weights of mean 1, with an axis for the columns of the draws; ones where there are none.

    >>> shares(np.array([1.0, 3.0])).tolist()
    [[0.5], [1.5]]
    """
    if weights is None:
        return np.ones(1)
    weights = np.asarray(weights, np.float64)
    return (weights / weights.mean())[..., None]
