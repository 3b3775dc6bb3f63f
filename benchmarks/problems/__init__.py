"""Targets and integrands whose expectations are known exactly, shared by benchmarks."""

from ._curved import banana, funnel, mixture
from ._gaussian import gaussian
from ._genz import GENZ, genz
from ._indicators import indicators
from ._logistic import Logistic, logistic
from ._problem import Integrand, Problem
from ._student import student

__all__ = [
    "GENZ",
    "Integrand",
    "Logistic",
    "Problem",
    "banana",
    "funnel",
    "gaussian",
    "genz",
    "indicators",
    "logistic",
    "mixture",
    "student",
]
