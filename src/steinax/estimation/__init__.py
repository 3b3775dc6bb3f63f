"""Expectations with control variates, and how sure they are."""

from ._audited import AuditMode, AuditWarning
from ._candidates import Candidates
from ._estimate import estimate
from ._many import memory_plan
from ._memory import MemoryPlan
from ._result import Estimate
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample
from ._weigh import weigh
from ._weights import Resampled, WeightedDraws

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
    "Resampled",
    "WeightedDraws",
    "estimate",
    "memory_plan",
    "weigh",
]
