"""Standard errors, effective sample sizes, convergence and tails of (chain, draw) series."""

from ._statistics import (
    HEAVY as HEAVY,
    HOPELESS as HOPELESS,
    Averages as Averages,
    ChainStatistics,
    averages as averages,
    batch_means as batch_means,
    chain_statistics,
    controlled_averages as controlled_averages,
    controlled_statistics,
    correlation,
    correlations as correlations,
    heavy,
    linearised,
    may_lack_mean,
    one_outcome as one_outcome,
    pareto_khat,
    shares as shares,
    split_rhat as split_rhat,
    t_quantile,
)
from ._streamed import (
    Adding as Adding,
    ChainSums as ChainSums,
    Sums as Sums,
    batch_length as batch_length,
    streamed_controlled as streamed_controlled,
    streamed_statistics as streamed_statistics,
)

__all__ = [
    "ChainStatistics",
    "chain_statistics",
    "controlled_statistics",
    "correlation",
    "heavy",
    "linearised",
    "may_lack_mean",
    "pareto_khat",
    "t_quantile",
]
