"""How far a sample is from its target, and the few draws that stand for all of it."""

from ._discrepancy import ksd
from ._thin import Thinned, thin

__all__ = ["Thinned", "ksd", "thin"]
