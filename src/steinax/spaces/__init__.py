"""Spaces other than R^d that draws may lie in, with their operators, audits and families."""

from ._binary import Binary, Glauber, Hamming, Multilinear, RootDimension, ScalarGlauber
from ._box import Box, BoxLangevin, WallDistance
from ._common import factor_of as factor_of, unit_size as unit_size
from ._counts import BirthDeath, Counts, Lattice, StandardDeviations, SteinChen
from ._sphere import Sphere, SphereLangevin, SphericalPolynomial
from ._torus import Seam, Torus, TorusLangevin, Trigonometric

__all__ = [
    "Binary",
    "BirthDeath",
    "Box",
    "BoxLangevin",
    "Counts",
    "Glauber",
    "Hamming",
    "Lattice",
    "Multilinear",
    "RootDimension",
    "ScalarGlauber",
    "Seam",
    "Sphere",
    "SphereLangevin",
    "SphericalPolynomial",
    "StandardDeviations",
    "SteinChen",
    "Torus",
    "TorusLangevin",
    "Trigonometric",
    "WallDistance",
]
