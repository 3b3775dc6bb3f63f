"""Where draws live when that is not all of R^d: each space with its operator, its audit and its family."""

from ._binary import Binary
from ._box import Box
from ._counts import Counts
from ._sphere import Sphere
from ._spherical import SphericalPolynomial

__all__ = ["Binary", "Box", "Counts", "Sphere", "SphericalPolynomial"]
