"""Posterior farms: estimate the same expectations under many posteriors."""

from ._batch import Batch
from ._many import FarmTask, estimate_many
from ._result import Estimates

__all__ = ["Batch", "Estimates", "FarmTask", "estimate_many"]
