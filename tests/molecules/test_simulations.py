"""Real simulations: what is read, estimated, refused and named."""

import numpy as np
import openmm
import pytest

import steinax as sx
from molecules import simulated
from steinax.checks import check_adapter

MDAnalysis = pytest.importorskip("MDAnalysis")
EDGES = np.arange(0.3, 0.6, 0.002)


@pytest.fixture(scope="module")
def liquid() -> sx.Sample:
    return simulated.liquid_sample()


def _energy_of(simulation):
    """The log density of positions in the same system, by OpenMM in double precision."""
    temperature = float(
        simulated.sx.molecules._simulations._plain(simulation.integrator.getTemperature())
    )

    def log_density(x: np.ndarray) -> float:
        simulation.context.setPositions(x.reshape(-1, 3))
        state = simulation.context.getState(getEnergy=True)
        energy = state.getPotentialEnergy().value_in_unit(openmm.unit.kilojoule_per_mole)
        return -energy / (simulated.KT * temperature)

    return log_density


class TestOpenMM:
    def test_contract(self) -> None:
        """Scores are gradients of the log density, in the order of the columns."""
        simulation = simulated.butane()
        reporter = simulated.reported(simulation, 30, 20)
        check_adapter(
            lambda: sx.molecules.from_openmm(reporter),
            chains=1,
            length=30,
            dim=12,
            names=[f"C{i}{i}.{axis}" for i in range(4) for axis in "xyz"],
            log_density=_energy_of(simulation),
        )

    def test_a_liquid_passes_and_gains(self, liquid: sx.Sample) -> None:
        report = sx.audit(liquid)
        assert report.passed, report
        g = sx.molecules.pair_distribution(liquid, EDGES)
        seen = g.plain_value > 0.5
        assert np.median((g.plain_mcse / g.mcse)[seen]) > 3
        longer = np.abs(g.value - g.plain_value) / np.hypot(g.mcse, g.plain_mcse)
        assert np.mean(longer[seen] < 3) > 0.97

    def test_energy_is_a_variable(self, liquid: sx.Sample) -> None:
        est = sx.estimate("energy", liquid)
        assert np.isfinite(est.value).all() and est.value[0] < 0

    def test_chains_are_of_one_system(self) -> None:
        reporters = [
            simulated.reported(simulated.butane(temperature=t), 10, 10) for t in (300.0, 310.0)
        ]
        with pytest.raises(ValueError, match="differ in their particles, boxes or temperatures"):
            sx.molecules.from_openmm(reporters)
        with pytest.raises(ValueError, match="no frames"):
            sx.molecules.from_openmm(sx.molecules.ForceReporter(10))

    @pytest.mark.slow
    def test_a_dihedral_is_known_exactly(self) -> None:
        """Within five errors in every bin: the torsion alone decides the density."""
        runs = [simulated.reported(simulated.butane(seed, 600.0), 600, 150) for seed in (1, 2)]
        sample = sx.molecules.from_openmm(runs)
        edges = np.linspace(-np.pi, np.pi, 73)
        found = sx.molecules.dihedral_distribution(sample, (0, 1, 2, 3), edges)
        truth = simulated.torsion_density(edges, 600.0)
        assert np.all(np.abs(found.value - truth) < 5 * found.mcse + 1e-3)
        assert np.median(found.plain_mcse / found.mcse) > 1.5
        angle = sx.molecules.angle_distribution(sample, (0, 1, 2), np.linspace(1.8, 2.2, 40))
        assert np.median(angle.plain_mcse / angle.mcse) > 3


class TestAudit:
    @pytest.mark.parametrize(
        ("factor", "words"),
        [
            (4.184, "kcal/mol"),
            (1 / 4.184, "kcal/mol"),
            (10.0, "per nanometre"),
            (0.1, "per Angstrom"),
            (1.15, "temperature of the simulation was about"),
            (0.85, "temperature of the simulation was about"),
            (-1.0, "wrong sign"),
        ],
    )
    def test_mistakes_are_named(self, liquid: sx.Sample, factor: float, words: str) -> None:
        wrong = sx.Sample(liquid.draws, factor * liquid.scores, space=liquid.space)
        report = sx.audit(wrong)
        assert not report.passed and words in report.fatal[0].message
        with pytest.raises(sx.AuditError, match=words):
            sx.molecules.pair_distribution(wrong, EDGES)

    def test_the_temperature_is_told(self, liquid: sx.Sample) -> None:
        """Within two per cent of the one that was given wrongly."""
        wrong = sx.Sample(liquid.draws, 1.25 * liquid.scores, space=liquid.space)
        said = sx.audit(wrong).fatal[0].message.partition(" K and not ")[0].rpartition(", ")[2]
        assert float(said) == pytest.approx(1.25 * liquid.space.temperature, rel=0.02)

    def test_forces_of_the_frame_before(self, liquid: sx.Sample) -> None:
        late = sx.Sample(liquid.draws[:, 1:], liquid.scores[:, :-1], space=liquid.space)
        assert not sx.audit(late).passed


class TestRefused:
    def _first_report(self, change) -> None:
        simulation = simulated.liquid(8, density=0.1)
        system = simulation.system
        integrator = change(system) or openmm.LangevinMiddleIntegrator(140.0, 1.0, 0.002)
        platform = openmm.Platform.getPlatformByName("Reference")
        positions = simulation.context.getState(getPositions=True).getPositions()
        again = openmm.app.Simulation(simulation.topology, system, integrator, platform)
        again.context.setPositions(positions)
        simulated.reported(again, 1, 1)

    def test_constraints(self) -> None:
        with pytest.raises(ValueError, match="constraints=None, rigidWater=False"):
            self._first_report(lambda system: system.addConstraint(0, 1, 0.4) and None)

    def test_barostats(self) -> None:
        barostat = openmm.MonteCarloBarostat(1.0, 140.0)
        with pytest.raises(ValueError, match="remove the barostat"):
            self._first_report(lambda system: system.addForce(barostat) and None)

    def test_constant_energy(self) -> None:
        with pytest.raises(ValueError, match="does not sample the canonical ensemble"):
            self._first_report(lambda system: openmm.VerletIntegrator(0.002))

    def test_particles_without_mass(self) -> None:
        with pytest.raises(ValueError, match="virtual sites or have no mass"):
            self._first_report(lambda system: system.setParticleMass(0, 0.0))


@pytest.fixture(scope="module")
def universe(liquid: sx.Sample):
    """The liquid in MDAnalysis's units: Angstrom and kJ/(mol Angstrom)."""
    count = liquid.dim // 3
    made = MDAnalysis.Universe.empty(count, trajectory=True, forces=True)
    made.add_TopologyAttr("types", ["Ar"] * count)
    kt = simulated.KT * liquid.space.temperature
    shape = (liquid.length, count, 3)
    positions = 10 * liquid.draws.reshape(shape)
    forces = liquid.scores.reshape(shape) * kt / 10
    box = np.array([*(10 * side for side in liquid.space.box), 90, 90, 90], np.float32)
    dimensions = np.tile(box, (liquid.length, 1))
    return made.load_new(
        positions.astype(np.float32), forces=forces.astype(np.float32), dimensions=dimensions
    )


class TestMDAnalysis:
    def test_of_a_trr_file_is_that_of_openmm(self, universe, liquid, tmp_path) -> None:
        path = tmp_path / "run.trr"
        with MDAnalysis.Writer(str(path), universe.atoms.n_atoms) as writer:
            for _ in universe.trajectory:
                writer.write(universe.atoms)
        read = MDAnalysis.Universe.empty(universe.atoms.n_atoms)
        read.load_new(str(path))
        sample = sx.molecules.from_mdanalysis(read, liquid.space.temperature)
        np.testing.assert_allclose(sample.scores, liquid.scores / 10, rtol=1e-4, atol=1e-3)
        assert sx.audit(sample).passed
        g = sx.molecules.pair_distribution(sample, 10 * EDGES)
        same = sx.molecules.pair_distribution(liquid, EDGES)
        np.testing.assert_allclose(g.value, same.value, atol=5e-3)

    @pytest.mark.filterwarnings("ignore:Guessed all Masses", "ignore:Reader has no dt")
    def test_units_of_a_lammps_dump_must_be_given(self, universe, liquid, tmp_path) -> None:
        """A dump in units real, in the format of LAMMPS's manual."""
        path = tmp_path / "run.lammpsdump"
        side = universe.dimensions[0]
        with path.open("w") as file:
            for step in universe.trajectory[:60]:
                file.write(f"ITEM: TIMESTEP\n{step.frame}\nITEM: NUMBER OF ATOMS\n{len(step)}\n")
                file.write("ITEM: BOX BOUNDS pp pp pp\n" + f"0.0 {side:.6f}\n" * 3)
                file.write("ITEM: ATOMS id type x y z fx fy fz\n")
                table = np.c_[step.positions, step.forces / 4.184]
                for i, row in enumerate(table, 1):
                    file.write(f"{i} 1 " + " ".join(f"{value:.6f}" for value in row) + "\n")
        read = MDAnalysis.Universe(str(path), format="LAMMPSDUMP", topology_format="LAMMPSDUMP")
        with pytest.raises(ValueError, match="force_unit="):
            sx.molecules.from_mdanalysis(read, liquid.space.temperature)
        sample = sx.molecules.from_mdanalysis(
            read, liquid.space.temperature, force_unit="kcal/(mol*Angstrom)"
        )
        first = liquid.scores[:, :60] / 10
        np.testing.assert_allclose(sample.scores, first, rtol=1e-3, atol=1e-3)
        with pytest.raises(ValueError, match=r"kcal/\(mol\*Angstrom\) or one of"):
            sx.molecules.from_mdanalysis(read, 100.0, force_unit="furlongs")

    def test_rigid_residues_are_particles(self, universe, liquid) -> None:
        """Each is at its first atom, with the total force on it."""
        some = universe.select_atoms("index 0:15")
        residues = np.repeat([0, 1], 8)
        made = MDAnalysis.Universe.empty(
            16, n_residues=2, atom_resindex=residues, trajectory=True, forces=True
        )
        frames = [(some.positions.copy(), some.forces.copy()) for _ in universe.trajectory[:30]]
        positions, forces = map(np.array, zip(*frames, strict=True))
        made.load_new(positions, forces=forces)
        sample = sx.molecules.from_mdanalysis(made, liquid.space.temperature, rigid=True)
        scores = liquid.scores[0, :30].reshape(30, -1, 3)[:, :16] / 10
        total = scores.reshape(30, 2, 8, 3).sum(axis=2).reshape(30, 6)
        np.testing.assert_allclose(sample.scores[0], total, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(sample.draws[0, :, 3:], positions[:, 8])

    def test_what_is_missing_or_changes(self, universe, liquid) -> None:
        without = MDAnalysis.Universe.empty(4, trajectory=True)
        with pytest.raises(ValueError, match="nstfout"):
            sx.molecules.from_mdanalysis(without, 300.0)
        with pytest.raises(ValueError, match="selects no atom"):
            sx.molecules.from_mdanalysis(universe, 300.0, select="index 999")
        with pytest.raises(ValueError, match="in Kelvin"):
            sx.molecules.from_mdanalysis(universe, -1.0)
        boxes = np.array([[10.0, 10, 10, 90, 90, 90], [10.1, 10, 10, 90, 90, 90]])
        with pytest.raises(ValueError, match="barostat"):
            sx.molecules._simulations._box(boxes)
        with pytest.raises(ValueError, match="not rectangular"):
            sx.molecules._simulations._box(np.array([[10.0, 10, 10, 60, 90, 90]]))
