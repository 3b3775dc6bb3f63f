"""Standard errors, effective sample sizes and convergence of (chain, draw) series."""

from ._batches import correlation
from ._importance import linearised
from ._quantiles import t_quantile
from ._statistics import ChainStatistics, chain_statistics, controlled_statistics

__all__ = [
    "ChainStatistics",
    "chain_statistics",
    "controlled_statistics",
    "correlation",
    "linearised",
    "t_quantile",
]
