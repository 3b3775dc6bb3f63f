"""Stein operators: they turn functions into functions of mean zero under the target."""

from ._base import AbstractOperator, ScaledOperator
from ._langevin import Langevin, ScalarLangevin

__all__ = ["AbstractOperator", "Langevin", "ScalarLangevin", "ScaledOperator"]
