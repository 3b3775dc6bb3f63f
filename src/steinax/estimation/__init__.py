"""Expectations with control variates, and how sure they are."""

from ._audited import AuditMode, AuditWarning, audited, with_audit
from ._blocks import MemoryPlan, memory_plan
from ._choice import Candidates
from ._estimate import estimate
from ._predictive import Predictive, predictive
from ._result import Estimate
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample
from ._weighted_draws import Quantiles, Resampled, WeightedDraws, weigh

__all__ = [
    "AbstractSplit",
    "AuditMode",
    "AuditWarning",
    "Candidates",
    "CrossFit",
    "Estimate",
    "HoldOut",
    "InSample",
    "MemoryPlan",
    "Predictive",
    "Quantiles",
    "Resampled",
    "WeightedDraws",
    "audited",
    "estimate",
    "memory_plan",
    "predictive",
    "weigh",
    "with_audit",
]
