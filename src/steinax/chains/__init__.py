"""Standard errors, effective sample sizes and convergence of (chain, draw) series."""

from ._statistics import (
    ChainStatistics,
    chain_statistics,
    controlled_statistics,
    correlation,
    linearised,
    t_quantile,
)

__all__ = [
    "ChainStatistics",
    "chain_statistics",
    "controlled_statistics",
    "correlation",
    "linearised",
    "t_quantile",
]
