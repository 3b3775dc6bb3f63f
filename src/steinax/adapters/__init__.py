"""From what a sampler returns to a Sample: one file a source, each importing its package lazily."""

from ._arrays import from_arrays
from ._arviz import from_arviz

__all__ = [
    "from_arrays",
    "from_arviz",
]
