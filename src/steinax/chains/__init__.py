"""Standard errors, effective sample sizes and convergence of (chain, draw) series."""

from ._statistics import ChainStatistics, chain_statistics

__all__ = ["ChainStatistics", "chain_statistics"]
