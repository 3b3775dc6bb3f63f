"""Draws, scores and the integrands evaluated on them."""

from ._coordinates import AffineMap, FunnelMap, find_funnel, standardise
from ._integrands import Integrands, IntegrandSpec, integrands
from ._sample import AbstractSpace, Sample
from ._stream import Stream
from ._variables import Variables
from ._weights import gather_chains, pareto_smoothed

__all__ = [
    "AbstractSpace",
    "AffineMap",
    "FunnelMap",
    "IntegrandSpec",
    "Integrands",
    "Sample",
    "Stream",
    "Variables",
    "find_funnel",
    "gather_chains",
    "integrands",
    "pareto_smoothed",
    "standardise",
]
