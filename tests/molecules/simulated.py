"""Real simulations by OpenMM, of a few seconds: a Lennard-Jones liquid and butane in vacuum."""

from functools import cache
from itertools import pairwise

import numpy as np
import openmm
from benchmarks.physics import _argon
from benchmarks.physics._argon import EPSILON, SIGMA
from openmm import app

import steinax as sx

KT = sx.molecules._simulations.BOLTZMANN
TORSION = (355.03, -68.19, 791.32)  # of united-atom butane, in Kelvin


def _topology(symbol: str, molecules: int, atoms: int) -> app.Topology:
    topology = app.Topology()
    chain = topology.addChain()
    for _ in range(molecules):
        residue = topology.addResidue("MOL", chain)
        element = app.Element.getBySymbol(symbol)
        made = [topology.addAtom(f"{symbol}{i}", element, residue) for i in range(atoms)]
        for one, other in pairwise(made):
            topology.addBond(one, other)
    return topology


def _simulation(topology, system, temperature: float, step: float, seed: int) -> app.Simulation:
    integrator = openmm.LangevinMiddleIntegrator(temperature, 1.0, step)
    integrator.setRandomNumberSeed(seed)
    platform = openmm.Platform.getPlatformByName("Reference")
    return app.Simulation(topology, system, integrator, platform)


def liquid(
    count: int = 32, seed: int = 1, density: float = 0.7, reduced: float = 1.2
) -> app.Simulation:
    """Argon in a periodic box, settled."""
    temperature, side = reduced * EPSILON / KT, (count / density) ** (1 / 3) * SIGMA
    argon = _argon.system(count, side, 0.49 * side, 0.42 * side)
    simulation = _simulation(_topology("Ar", count, 1), argon, temperature, 0.01, seed)
    simulation.context.setPositions(_argon.grid(count, side))
    simulation.context.setVelocitiesToTemperature(temperature, seed)
    simulation.step(2000)
    return simulation


def butane(seed: int = 1, temperature: float = 300.0) -> app.Simulation:
    """Butane of four united atoms in vacuum, settled."""
    system = openmm.System()
    for mass in (15.035, 14.027, 14.027, 15.035):
        system.addParticle(mass)
    bond, angle = openmm.HarmonicBondForce(), openmm.HarmonicAngleForce()
    for i in range(3):
        bond.addBond(i, i + 1, 0.154, 200_000.0)
    for i in range(2):
        angle.addAngle(i, i + 1, i + 2, np.deg2rad(114.0), 519.7)
    torsion = openmm.CustomTorsionForce(
        "a * (1 + cos(theta)) + b * (1 - cos(2 * theta)) + c * (1 + cos(3 * theta))"
    )
    for name, kelvin in zip("abc", TORSION, strict=True):
        torsion.addGlobalParameter(name, kelvin * KT)
    torsion.addTorsion(0, 1, 2, 3, [])
    for force in (bond, angle, torsion):
        system.addForce(force)
    simulation = _simulation(_topology("C", 1, 4), system, temperature, 0.002, seed)
    start = [[0, 0.15, 0], [0, 0, 0], [0.154, 0, 0], [0.21, 0.05, 0.14]]
    simulation.context.setPositions(np.array(start))
    simulation.context.setVelocitiesToTemperature(temperature, seed)
    simulation.step(1000)
    return simulation


def torsion_density(edges: np.ndarray, temperature: float) -> np.ndarray:
    """The density of butane's dihedral in bins: nothing but the torsion depends on it."""
    fine = np.linspace(edges[:-1], edges[1:], 101)
    a, b, c = TORSION
    energy = a * (1 + np.cos(fine)) + b * (1 - np.cos(2 * fine)) + c * (1 + np.cos(3 * fine))
    mass = np.trapezoid(np.exp(-energy / temperature), fine, axis=0)
    return mass / mass.sum() / np.diff(edges)


def reported(simulation: app.Simulation, frames: int, every: int) -> sx.molecules.ForceReporter:
    """Frames of a simulation."""
    reporter = sx.molecules.ForceReporter(every)
    simulation.reporters.append(reporter)
    simulation.step(frames * every)
    return reporter


@cache
def liquid_sample() -> sx.Sample:
    return sx.molecules.from_openmm(reported(liquid(), 300, 60))
