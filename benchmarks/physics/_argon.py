"""Argon as a Lennard-Jones fluid in a periodic box, for OpenMM."""

import numpy as np
import openmm

EPSILON, SIGMA, MASS = 0.996, 0.3405, 39.948  # kJ/mol, nm, dalton


def system(count: int, side: float, reach: float, switch: float) -> openmm.System:
    """So many particles in a box; the potential is switched off between `switch` and `reach`."""
    made, force = openmm.System(), openmm.NonbondedForce()
    made.setDefaultPeriodicBoxVectors(*np.diag([side] * 3).tolist())
    force.setNonbondedMethod(force.CutoffPeriodic)
    force.setCutoffDistance(reach)
    force.setUseSwitchingFunction(True)
    force.setSwitchingDistance(switch)
    force.setUseDispersionCorrection(False)
    for _ in range(count):
        made.addParticle(MASS)
        force.addParticle(0.0, SIGMA, EPSILON)
    made.addForce(force)
    return made


def grid(count: int, side: float) -> np.ndarray:
    """Positions to start from, (particle, 3)."""
    cells = int(np.ceil(count ** (1 / 3)))
    places = np.stack(np.meshgrid(*[np.arange(cells)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return (places[:count] + 0.5) * side / cells
