"""Posterior farms: the same expectations under many posteriors."""

from ._batch import Batch
from ._many import estimate_many
from ._result import Estimates
from ._task import FarmTask

__all__ = ["Batch", "Estimates", "FarmTask", "estimate_many"]
