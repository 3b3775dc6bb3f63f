import numpy as np

from .._types import AnyArray

PER_DEGREE = 2.0  # effective draws for each degree of freedom of a standard error
TAILS = 4.0  # how much a heavy tail takes of them: 2 in theory, for independent draws


def freedom_of(kurtosis: AnyArray, ess: AnyArray, draws: int) -> np.ndarray:
    r"""How many degrees of freedom the standard errors of the means of some series have, (k,).

    A standard error from few effective draws is itself uncertain, and more so where few draws make
    most of it. With $m$ effective draws (at most as many as there are draws) and kurtosis $\kappa$,

    $$ \frac1\nu = \frac2m + \frac{\max(\kappa - 3, 0)}{4 m} , $$

    and $\nu$ is at least 1.

    Args:
        kurtosis: of each series, (k,).
        ess: effective sample sizes, (k,).
        draws: of all chains.

    >>> freedom_of(np.array([3.0, 9.0]), np.array([1000.0, 1000.0]), 1000).round().tolist()
    [500.0, 286.0]
    """
    draws = np.minimum(ess, draws)
    return 1 / np.clip((PER_DEGREE + np.maximum(kurtosis - 3, 0) / TAILS) / draws, 1e-300, 1.0)


def t_quantile(level: float, freedom: AnyArray) -> np.ndarray:
    """How many standard errors an interval reaches to each side, by Student's distribution.

    Args:
        level: the probability that the interval should cover.
        freedom: degrees of freedom, (k,).

    >>> t_quantile(0.95, np.array([5.0, 500.0])).round(2).tolist()
    [2.57, 1.96]
    """
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level {level}: give the probability to cover, such as 0.95.")
    return np.asarray(stdtrit(freedom, (1 + level) / 2))
