"""Expectations with control variates, and how sure they are."""

from ._estimate import Estimate, estimate
from ._splits import AbstractSplit, CrossFit, HoldOut, InSample

__all__ = ["AbstractSplit", "CrossFit", "Estimate", "HoldOut", "InSample", "estimate"]
