"""Estimate distributions from molecular simulations, with far smaller errors, by their forces."""

from ._coordinates import Angle, Dihedral, Distances, FieldsAlong, ParticleLangevin, Positions
from ._distributions import (
    angle_distribution,
    density_profile,
    dihedral_distribution,
    pair_distribution,
)
from ._particles import Particles
from ._simulations import ForceReporter, from_mdanalysis, from_openmm

__all__ = [
    "Angle",
    "Dihedral",
    "Distances",
    "FieldsAlong",
    "ForceReporter",
    "ParticleLangevin",
    "Particles",
    "Positions",
    "angle_distribution",
    "density_profile",
    "dihedral_distribution",
    "from_mdanalysis",
    "from_openmm",
    "pair_distribution",
]
