"""The extra `physics`: estimates exported to pyerrors, and forces of OpenMM, also through MDAnalysis."""


def main() -> None:
    import expect
    import numpy as np

    import steinax as sx

    expect.installed()
    phi = np.random.default_rng(0).normal(size=(4, 100, 4, 4))
    sample = sx.lattices.from_fields(phi, -phi)
    f = sx.lattices.observables((4, 4), ["phi^2"])
    obs = sx.lattices.to_pyerrors(f, sample, sx.families.Lattice())["phi^2"]
    assert np.allclose(obs.value, 1.0), obs
    argon = _argon()
    g = sx.molecules.pair_distribution(argon, 4, audit="off")
    assert len(g.value) == 4 and np.isfinite(g.mcse).all(), g
    assert np.allclose(_read_again(argon).scores, argon.scores, rtol=1e-5)


def _argon():
    """Sixty frames of eight atoms."""
    import numpy as np
    import openmm
    from openmm import app

    import steinax as sx

    system, topology = openmm.System(), app.Topology()
    system.setDefaultPeriodicBoxVectors([1, 0, 0], [0, 1, 0], [0, 0, 1])
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(force.CutoffPeriodic)
    force.setCutoffDistance(0.49)
    residue = topology.addResidue("AR", topology.addChain())
    for _ in range(8):
        topology.addAtom("Ar", app.Element.getBySymbol("Ar"), residue)
        system.addParticle(39.948)
        force.addParticle(0.0, 0.34, 0.996)
    system.addForce(force)
    integrator = openmm.LangevinMiddleIntegrator(TEMPERATURE, 1.0, 0.01)
    simulation = app.Simulation(topology, system, integrator)
    grid = np.stack(np.meshgrid(*[np.arange(2)] * 3), axis=-1).reshape(-1, 3)
    simulation.context.setPositions((grid + 0.5) / 2)
    reporter = sx.molecules.ForceReporter(10)
    simulation.reporters.append(reporter)
    simulation.step(600)
    return sx.molecules.from_openmm(reporter)


def _read_again(sample):
    """The same frames by MDAnalysis, from arrays in its own units."""
    import MDAnalysis
    import numpy as np
    from MDAnalysis.coordinates.memory import MemoryReader

    import steinax as sx

    kt = 0.00831446261815324 * TEMPERATURE  # kJ/mol
    frames = (sample.length, 8, 3)
    positions = 10 * sample.draws[0].reshape(frames)
    forces = kt * sample.scores[0].reshape(frames) / 10
    universe = MDAnalysis.Universe.empty(8, trajectory=True, forces=True)
    box = np.tile([10.0, 10, 10, 90, 90, 90], (sample.length, 1))
    universe.load_new(positions, format=MemoryReader, forces=forces, dimensions=box)
    again = sx.molecules.from_mdanalysis(universe, TEMPERATURE)
    return sx.Sample(again.draws / 10, again.scores * 10)


TEMPERATURE = 119.8

if __name__ == "__main__":
    main()
