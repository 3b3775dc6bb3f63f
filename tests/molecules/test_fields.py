"""Fields along coordinates: the closed forms are the operator's, and their means are zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._numerics import precision
from steinax.molecules import Angle, Dihedral, Distances, FieldsAlong, Particles, Positions
from steinax.molecules._coordinates import sides_of

FREE, BOX = (np.inf,) * 3, (2.0, 2.5, 3.0)
COORDINATES = {
    "distances": Distances(BOX, ("a",) * 4),
    "distances of kinds": Distances(BOX, ("a", "b", "a", "b"), ("a", "b")),
    "distances of molecules": Distances(BOX, ("a", "b", "a", "b"), None, (0, 0, 1, 1)),
    "distances in a plane": Distances(BOX[:2], ("a",) * 4),
    "positions": Positions(BOX, 1, (0, 2)),
    "angle": Angle(FREE, (0, 1, 2), (2, 3)),
    "dihedral": Dihedral(FREE, (0, 1, 2, 3), (3,)),
}
rows = pytest.mark.parametrize("name", COORDINATES)


@pytest.mark.slow
@rows
def test_closed_forms_are_those_of_the_operator(name: str) -> None:
    coordinate = COORDINATES[name]
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, size=(20, 4 * len(coordinate.box)))
    score = rng.normal(size=x.shape)
    low, high = coordinate.ends(x)
    family = FieldsAlong(coordinate, np.linspace(low, high, 7), core=name == "distances")
    with precision(np.float64):
        state = family.setup(x, score)
        closed = family.feature_matrix(state, x, score)

        def automatic(point, push):
            return family.operator(lambda z: family.basis(state, z), point, push)

        found = jax.jit(jax.vmap(automatic))(jnp.asarray(x), jnp.asarray(score))
    assert closed.shape == (20, family.size(state, x.shape[1]))
    np.testing.assert_allclose(closed, found, rtol=1e-8, atol=1e-8 * np.abs(closed).max())


@rows
def test_means_are_zero(name: str) -> None:
    """In an ideal gas, or for normal positions: five standard errors of 20,000 independent draws."""
    coordinate = COORDINATES[name]
    rng, dim = np.random.default_rng(1), 4 * len(coordinate.box)
    periodic = np.isfinite(coordinate.box).all()
    if periodic:
        x = rng.uniform(size=(20_000, 4, len(coordinate.box))) * coordinate.box
        x, score = x.reshape(-1, dim), np.zeros((20_000, dim))
    else:
        x = rng.normal(size=(20_000, dim))
        score = -x
    family = FieldsAlong(coordinate, 6)
    values = family.feature_matrix(family.setup(x[:100], score[:100]), x, score)
    error = values.std(axis=0) / np.sqrt(len(values))
    assert np.all(np.abs(values.mean(axis=0)) < 5 * error + 1e-12)
    if not periodic:
        wrong = family.feature_matrix(family.setup(x[:100], score[:100]), x, 2 * score)
        assert np.any(np.abs(wrong.mean(axis=0)) > 5 * error)


@pytest.mark.parametrize("turn", [Angle(FREE, (0, 1, 2), (2,)), Dihedral(FREE, (0, 1, 2, 3), (3,))])
def test_a_field_turns_its_coordinate_at_unit_speed(turn) -> None:
    x = np.random.default_rng(3).normal(size=12)
    value, field = turn.fields(jnp.asarray(x))
    moved, _ = turn.fields(jnp.asarray(x + 1e-3 * np.asarray(field[0])))
    assert float(moved[0] - value[0]) == pytest.approx(1e-3, rel=2e-2)


def test_bonds_tell_the_sides_of_a_molecule() -> None:
    bonds = [(0, 1), (1, 2), (2, 3), (2, 4), (5, 4)]
    assert sides_of(bonds, 1, 2) == (2, 3, 4, 5)
    assert sides_of(bonds, 2, 1) == (0, 1)


def test_the_ideal_gas_has_no_structure() -> None:
    """g is 1 and the profile flat, within five errors; bins have equal names and shapes."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2, 200, 20 * 3))
    sample = sx.Sample(x, 0 * x, space=Particles((1.0, 1.0, 1.0)))
    g = sx.molecules.pair_distribution(sample, 20)
    assert np.all(np.abs(g.value - 1) < 5 * g.mcse)
    np.testing.assert_allclose(g.plain_value, 1, atol=5 * float(np.max(g.plain_mcse)))
    profile = sx.molecules.density_profile(sample, 10, axis=0)
    np.testing.assert_allclose(profile.value, 20)


class TestMessages:
    space = Particles((1.0, 1.0, 1.0))

    def _sample(self, space=None) -> sx.Sample:
        x = np.random.default_rng(0).uniform(size=(1, 50, 12))
        return sx.Sample(x, 0 * x, space=space or self.space)

    def test_bins_beyond_half_the_box(self) -> None:
        with pytest.raises(ValueError, match="half the shortest side"):
            sx.molecules.pair_distribution(self._sample(), [0.1, 0.9])

    def test_free_space_has_no_density(self) -> None:
        with pytest.raises(ValueError, match="free space"):
            sx.molecules.pair_distribution(self._sample(Particles()), 10)

    def test_other_samples(self) -> None:
        x = np.random.default_rng(0).normal(size=(1, 50, 12))
        with pytest.raises(ValueError, match="from_openmm"):
            sx.molecules.pair_distribution(sx.Sample(x, -x), 10)

    def test_kinds_that_are_not_there(self) -> None:
        with pytest.raises(ValueError, match="the kinds are"):
            sx.molecules.pair_distribution(self._sample(), 10, between=("O", "H"))
        with pytest.raises(ValueError, match="no particle is of kind"):
            sx.molecules.density_profile(self._sample(), 10, kind="O")

    def test_what_turns_must_be_known(self) -> None:
        with pytest.raises(ValueError, match="has no bonds"):
            sx.molecules.dihedral_distribution(self._sample(Particles()), (0, 1, 2, 3))
        with pytest.raises(ValueError, match="must contain the last"):
            sx.molecules.dihedral_distribution(self._sample(), (0, 1, 2, 3), moving=(1, 3))
        with pytest.raises(ValueError, match="different particles"):
            sx.molecules.angle_distribution(self._sample(), (0, 1, 1))

    def test_rigid_bonds(self) -> None:
        rng = np.random.default_rng(0)
        first, turn = rng.uniform(size=(2, 1, 50, 3))
        turn = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
        x = np.concatenate([first, first + 0.1 * turn], axis=-1)
        with pytest.raises(ValueError, match="bonds are rigid"):
            sx.Sample(x, 0 * x, space=self.space)

    def test_shapes(self) -> None:
        with pytest.raises(ValueError, match="two or more particles"):
            sx.Sample(np.zeros((50, 4)), np.zeros((50, 4)), space=self.space)
        with pytest.raises(ValueError, match="give one for each"):
            self._sample(Particles((1.0, 1.0, 1.0), kinds=("a", "b")))
        with pytest.raises(ValueError, match="sides of the box"):
            Particles((1.0, -1.0, 1.0))
        with pytest.raises(ValueError, match="three or more"):
            FieldsAlong(COORDINATES["dihedral"], 2)
