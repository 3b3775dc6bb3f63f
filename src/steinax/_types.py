"""Array types and the names of their axes, as used in code, docs and shapes.

| word | meaning |
|---|---|
| `chain`, `draw` | the Markov chains and the draws of each |
| `n` | all draws, with the chains concatenated |
| `dim` | the dimension of the space the draws live in |
| `k` | the integrands |
| `p` | the basis functions of a linear family |
"""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

type PyTree = Any
if TYPE_CHECKING:  # NumPy and jax arrays are interchangeable, which no stub says
    AnyArray = Any
else:
    AnyArray = jax.Array | np.ndarray

Scalar = Float[AnyArray, ""]
Point = Float[AnyArray, " dim"]
Points = Float[AnyArray, "n dim"]
OtherPoints = Float[AnyArray, "m dim"]
Values = Float[AnyArray, "n k"]
Coefficients = Float[AnyArray, "p k"]
Chains = Float[AnyArray, "chain draw dim"]
Series = Float[AnyArray, "chain draw k"]
Key = PRNGKeyArray

__all__ = [
    "AnyArray",
    "Chains",
    "Coefficients",
    "Key",
    "OtherPoints",
    "Point",
    "Points",
    "PyTree",
    "Scalar",
    "Series",
    "Values",
]
