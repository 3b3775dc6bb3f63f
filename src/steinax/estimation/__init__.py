"""Expectations with control variates, and how sure they are."""

from ._candidates import Candidates
from ._estimate import Estimate, estimate
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample

__all__ = ["AbstractSplit", "Candidates", "CrossFit", "Estimate", "HoldOut", "InSample", "estimate"]
