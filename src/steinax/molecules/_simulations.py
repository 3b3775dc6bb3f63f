"""Convert the stored positions and forces of a molecular simulation to a sample."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._require import require
from .._types import AnyArray
from ..data import Sample
from ._particles import Particles

BOLTZMANN = 8.31446261815324e-3  # kJ/(mol K), exact in the SI
SAME_BOX = 1e-5  # the largest relative change of a side of the box that is rounding

HOW_FORCES = """the trajectory has no forces. They are kept by
  GROMACS: nstfout = nstxout in the .mdp file, and the .trr file
  LAMMPS:  dump 1 all custom 100 run.dump id type x y z fx fy fz
  OpenMM:  steinax.molecules.ForceReporter(100), and from_openmm
  Amber:   ntwf = -1 and ioutfm = 1"""


class Frames(NamedTuple):
    """Frames of one run, and its particles."""

    positions: AnyArray  # (frame, particle, 3)
    forces: AnyArray  # in kJ/mol per unit of length, (frame, particle, 3)
    space: Particles
    names: tuple[str, ...]
    energy: AnyArray | None = None  # (frame,), in kJ/mol


class ForceReporter:
    """A reporter of OpenMM that keeps positions, forces and potential energies in memory.

    At its first report it checks the system, and refuses what violates the identity of forces:
    constraints, virtual sites, a barostat, and dynamics of constant energy.

    Args:
        interval: the number of steps between frames.

    Example::

        reporter = sx.molecules.ForceReporter(100)
        simulation.reporters.append(reporter)
        simulation.step(50_000)
        sample = sx.molecules.from_openmm(reporter)
    """

    def __init__(self, interval: int):
        if interval < 1:
            raise ValueError(f"ForceReporter({interval}): give the number of steps between frames.")
        self.interval = interval
        self.positions: list[np.ndarray] = []
        self.forces: list[np.ndarray] = []
        self.energies: list[float] = []
        self.space: Particles | None = None
        self.names: tuple[str, ...] = ()

    def describeNextReport(self, simulation: Any) -> dict[str, Any]:
        """Tell OpenMM when the next frame is due, and which data it needs."""
        steps = self.interval - simulation.currentStep % self.interval
        return {"steps": steps, "periodic": False, "include": ["positions", "forces", "energy"]}

    def report(self, simulation: Any, state: Any) -> None:
        """Keep a frame."""
        if self.space is None:
            self.space, self.names = _of_openmm(simulation)
        self.positions.append(_plain(state.getPositions(asNumpy=True)))
        self.forces.append(_plain(state.getForces(asNumpy=True)))
        self.energies.append(float(_plain(state.getPotentialEnergy())))


def from_openmm(
    reporters: ForceReporter | Sequence[ForceReporter], *, temperature: float | None = None
) -> Sample:
    r"""Create a sample from positions and forces of OpenMM: the score is the force over $k_B T$.

    Positions are in nm, and not wrapped. The variable `energy` is the potential energy in kJ/mol.

    Args:
        reporters: a `ForceReporter` that was appended to the reporters of a simulation; several become
            chains.
        temperature: in Kelvin; by default that of the thermostat.

    Example::

        sample = sx.molecules.from_openmm(reporter)
        g = sx.molecules.pair_distribution(sample, 200)
    """
    runs = [reporters] if isinstance(reporters, ForceReporter) else list(reporters)
    if not runs or any(run.space is None for run in runs):
        raise ValueError(
            "the reporter has no frames: append it to simulation.reporters before simulation.step(...)."
        )
    frames = []
    for run in runs:
        assert run.space is not None
        positions, forces, energy = map(np.array, (run.positions, run.forces, run.energies))
        frames.append(Frames(positions, forces, run.space, run.names, energy))
    return _sample(frames, temperature)


def from_mdanalysis(
    universes: Any,
    temperature: float,
    *,
    select: str = "all",
    force_unit: str | None = None,
    rigid: bool = False,
) -> Sample:
    r"""Create a sample from trajectories with forces that MDAnalysis reads: TRR, LAMMPS dump, H5MD, NetCDF.

    The score is the force over $k_B T$. Positions are in Angstrom.

    Args:
        universes: an `MDAnalysis.Universe`; several, such as replicas, become chains.
        temperature: of the thermostat, in Kelvin.
        select: the atoms, in the selection language of MDAnalysis.
        force_unit: the unit of the forces, for formats that do not specify it: `"kcal/(mol*Angstrom)"`
            for LAMMPS with units real. By default forces are in kJ/(mol Angstrom), as MDAnalysis converts
            them.
        rigid: whether residues are rigid molecules, such as SPC/E or TIP3P water: each is then one particle,
            at its first atom, with the total force on it.

    Example::

        universe = MDAnalysis.Universe("run.tpr", "run.trr")
        oxygens = sx.molecules.from_mdanalysis(universe, 300.0, select="name OW")
    """
    require("MDAnalysis", "physics")
    if not temperature > 0:
        raise ValueError(f"temperature={temperature}: give that of the thermostat, in Kelvin.")
    several = list(universes) if isinstance(universes, list | tuple) else [universes]
    frames = [_of_universe(each, select, force_unit, rigid) for each in several]
    return _sample(frames, temperature)


def _sample(runs: list[Frames], temperature: float | None) -> Sample:
    """Stack runs as chains, as long as the shortest."""
    space, names = runs[0].space, runs[0].names
    if any(run.space != space or run.names != names for run in runs):
        raise ValueError(
            "the runs differ in their particles, boxes or temperatures: give those of one system as chains."
        )
    temperature = space.temperature if temperature is None else float(temperature)
    if temperature is None:
        raise ValueError("the integrator has no temperature: give temperature=, in Kelvin.")
    space = Particles(space.box, space.kinds, space.molecules, space.bonds, temperature)
    length = min(len(run.positions) for run in runs)
    positions, forces = (
        np.stack([np.asarray(getattr(run, what), np.float64)[:length] for run in runs])
        for what in ("positions", "forces")
    )
    shape = (len(runs), length, -1)
    variables = None
    if all(run.energy is not None for run in runs):
        import xarray

        energy = np.stack([np.asarray(run.energy)[:length] for run in runs])
        variables = xarray.Dataset({"energy": (("chain", "draw"), energy)})
    return Sample(
        positions.reshape(shape),
        forces.reshape(shape) / (BOLTZMANN * temperature),
        names,
        variables=variables,
        space=space,
    )


def _plain(quantity: Any) -> np.ndarray:
    """Return the number or array of a quantity in OpenMM's units: nm, kJ/mol, Kelvin."""
    unit = require("openmm.unit", "physics")
    return np.asarray(quantity.value_in_unit_system(unit.md_unit_system))


def _of_openmm(simulation: Any) -> tuple[Particles, tuple[str, ...]]:
    """Describe the particles of a simulation; refuse what its forces do not describe."""
    system, integrator = simulation.system, simulation.context.getIntegrator()
    forces = [type(force).__name__ for force in system.getForces()]
    _refuse_constraints(system)
    for name in forces:
        if "Barostat" in name:
            raise ValueError(
                f"the system has a {name}, and the box changes: run it until the volume has settled, remove "
                "the barostat, and keep frames at the mean volume."
            )
    kind = type(integrator).__name__
    if "Verlet" in kind and "AndersenThermostat" not in forces:
        raise ValueError(
            f"{kind} without a thermostat keeps the energy, and does not sample the canonical ensemble: use "
            "LangevinMiddleIntegrator(temperature, 1 / picosecond, step)."
        )
    temperature = getattr(integrator, "getTemperature", lambda: None)()
    atoms = list(simulation.topology.atoms())
    kinds = tuple(atom.element.symbol if atom.element is not None else atom.name for atom in atoms)
    bonds = tuple((bond[0].index, bond[1].index) for bond in simulation.topology.bonds())
    box = (np.inf,) * 3
    if system.usesPeriodicBoundaryConditions():
        vectors = _plain(simulation.context.getState().getPeriodicBoxVectors(asNumpy=True))
        box = _rectangular(vectors)
    groups = [list(map(int, group)) for group in simulation.context.getMolecules()]
    given = None if temperature is None else float(_plain(temperature))
    space = Particles(box, kinds, _numbers(groups, len(atoms)), bonds, given)
    return space, _names([atom.name for atom in atoms])


def _refuse_constraints(system: Any) -> None:
    """Refuse rigid bonds and particles without coordinates of their own."""
    if system.getNumConstraints():
        raise ValueError(
            f"the system has {system.getNumConstraints()} constraints, and the forces that keep them are not "
            "among those of OpenMM: createSystem(constraints=None, rigidWater=False), with a time step of "
            "0.5 fs or so for bonds of hydrogen."
        )
    count = system.getNumParticles()
    still = [i for i in range(count) if system.isVirtualSite(i) or not float(_mass(system, i))]
    if still:
        raise ValueError(
            f"{len(still)} particles are virtual sites or have no mass, the first number {still[0]}: they "
            "have no coordinates of their own. Use a model without them, such as flexible SPC/Fw water."
        )


def _mass(system: Any, index: int) -> np.ndarray:
    return _plain(system.getParticleMass(index))


def _rectangular(vectors: np.ndarray) -> tuple[float, ...]:
    if np.any(np.abs(vectors - np.diag(np.diag(vectors))) > SAME_BOX):
        raise ValueError(
            "the periodic box is not rectangular: only rectangular ones are supported."
        )
    return tuple(np.diag(vectors).tolist())


def _numbers(groups: list[list[int]], count: int) -> tuple[int, ...]:
    """Number the molecules of particles; none if each is one particle, or there is only one."""
    if len(groups) in (1, count):
        return ()
    numbers = np.zeros(count, int)
    for number, group in enumerate(groups):
        numbers[group] = number
    return tuple(numbers.tolist())


def _names(atoms: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}{i}.{axis}" for i, name in enumerate(atoms) for axis in "xyz")


def _of_universe(universe: Any, select: str, force_unit: str | None, rigid: bool) -> Frames:
    """Read the frames of a universe."""
    atoms, trajectory = universe.select_atoms(select), universe.trajectory
    if not len(atoms):
        raise ValueError(
            f"select={select!r} selects no atom: give another selection, or leave it out."
        )
    factor = _force_factor(trajectory, force_unit)
    members = [residue.atoms & atoms for residue in atoms.residues] if rigid else []
    boxes, positions, forces = [], [], []
    for step in trajectory:
        if not step.has_forces:
            raise ValueError(HOW_FORCES)
        boxes.append(np.full(6, np.inf) if step.dimensions is None else step.dimensions.copy())
        if rigid:
            positions.append([group.positions[0] for group in members])
            forces.append([group.forces.astype(np.float64).sum(axis=0) for group in members])
        else:
            positions.append(atoms.positions.copy())
            forces.append(atoms.forces.copy())
    kinds, names = _kinds(atoms), [str(name) for name in getattr(atoms, "names", _kinds(atoms))]
    bonds, molecules = ((), ()) if rigid else _bonded(atoms)
    if rigid:
        names = [str(getattr(group.residues[0], "resname", "molecule")) for group in members]
        kinds = names
    space = Particles(_box(np.array(boxes)), tuple(kinds), molecules, bonds)
    return Frames(np.array(positions), np.array(forces) * factor, space, _names(names))


def _kinds(atoms: Any) -> list[str]:
    """List the element of each atom, or its type."""
    for attribute in ("elements", "types", "names"):
        values = [str(each) for each in getattr(atoms, attribute, [])]
        if values and all(values):
            return values
    return [""] * len(atoms)


def _bonded(atoms: Any) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """List the bonds among atoms, by their indices, and the number of the molecule of each."""
    if not hasattr(atoms, "bonds"):
        return (), ()
    place = {int(index): i for i, index in enumerate(atoms.indices)}
    ends = [tuple(place.get(int(index)) for index in bond) for bond in atoms.bonds.indices]
    bonds = tuple((a, b) for a, b in ends if a is not None and b is not None)
    groups: dict[int, list[int]] = {}
    for i, fragment in enumerate(atoms.fragindices):
        groups.setdefault(int(fragment), []).append(i)
    return bonds, _numbers(list(groups.values()), len(atoms))


def _force_factor(trajectory: Any, force_unit: str | None) -> float:
    """Return the factor from the unit of the forces to kJ/(mol Angstrom)."""
    units = require("MDAnalysis.units", "physics")
    if force_unit is not None:
        if force_unit == "kcal/(mol*Angstrom)":
            return 4.184
        known = sorted(units.forceUnit_factor)
        if force_unit not in known:
            raise ValueError(
                f"force_unit={force_unit!r}: give kcal/(mol*Angstrom) or one of {', '.join(known)}."
            )
        return float(units.get_conversion_factor("force", force_unit, "kJ/(mol*Angstrom)"))
    if "LAMMPSDUMP" in str(getattr(trajectory, "format", "")).upper():
        raise ValueError(
            "a LAMMPS dump does not say what its forces are in: give force_unit='kcal/(mol*Angstrom)' for "
            "units real. For other units convert the arrays, and give Sample(positions, forces / kT, "
            "space=steinax.molecules.Particles(box))."
        )
    return 1.0


def _box(boxes: np.ndarray) -> tuple[float, ...]:
    """Return the sides of the box of all frames."""
    if np.isinf(boxes).all():
        return (np.inf,) * 3
    if not np.allclose(boxes[:, 3:], 90.0, atol=1e-3):
        raise ValueError(
            "the periodic box is not rectangular: only rectangular ones are supported."
        )
    if np.any(np.ptp(boxes[:, :3], axis=0) > SAME_BOX * boxes[0, :3]):
        raise ValueError(
            "the box changes from frame to frame, as with a barostat: run at constant volume, with the mean "
            "volume of a run at constant pressure."
        )
    return tuple(map(float, boxes[0, :3]))
