"""Estimates of expectations with control variates, and their standard errors."""

from ._blocks import MemoryPlan, memory_plan
from ._candidates import PLAIN as PLAIN
from ._choice import Candidates
from ._estimate import estimate, with_audit
from ._kinks import Crossings as Crossings, crossings as crossings
from ._predictive import Predictive, predictive
from ._printed import (
    HEADINGS as HEADINGS,
    finest as finest,
    fitted as fitted,
    no_mean as no_mean,
)
from ._quantiles import Quantiles
from ._result import (
    ARRAYS as ARRAYS,
    Estimate,
    from_statistics as from_statistics,
    same_draws as same_draws,
    same_names as same_names,
)
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample, Validation, cross_validate
from ._weighted_draws import Resampled, WeightedDraws, weigh

__all__ = [
    "AbstractSplit",
    "Candidates",
    "CrossFit",
    "Estimate",
    "HoldOut",
    "InSample",
    "MemoryPlan",
    "Predictive",
    "Quantiles",
    "Resampled",
    "Validation",
    "WeightedDraws",
    "cross_validate",
    "estimate",
    "memory_plan",
    "predictive",
    "weigh",
    "with_audit",
]
