"""Draws, scores and the integrands evaluated on them."""

from ._affine import AffineMap, standardise
from ._funnel import FunnelMap, find_funnel
from ._gather_chains import gather_chains
from ._integrands import Integrands, integrands
from ._sample import Sample
from ._space import AbstractSpace
from ._stream import Stream
from ._variables import Variables
from ._weights import pareto_smoothed

__all__ = [
    "AbstractSpace",
    "AffineMap",
    "FunnelMap",
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
