"""Expectations with control variates, and how sure they are."""

from ._candidates import Candidates
from ._estimate import Estimate, estimate
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample
from ._weigh import weigh
from ._weights import Resampled, WeightedDraws

__all__ = [
    "AbstractSplit",
    "Candidates",
    "CrossFit",
    "Estimate",
    "HoldOut",
    "InSample",
    "Resampled",
    "WeightedDraws",
    "estimate",
    "weigh",
]
