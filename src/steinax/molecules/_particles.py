"""Particles in a periodic box or in free space: the space of molecular simulations, and its audit."""

from collections.abc import Iterator
from functools import reduce
from itertools import combinations_with_replacement
from typing import Any

import equinox as eqx
import numpy as np

from .._show import listed
from .._types import AnyArray, Chains, Points
from ..auditing import Repair, shifted
from ..data import AbstractSpace
from ..families import AbstractLinearFamily
from ..spaces import factor_of, unit_size
from ._coordinates import Distances, FieldsAlong, ParticleLangevin, sums

RIGID = 1e-3  # a distance that varies by a smaller fraction is that of a rigid bond
LOOKED = 10  # configurations in which distances are compared
NODES = 30  # most nodes of fields
DRAWS_PER_NODE = 10
TESTED = 8  # fields that the audit tests, or two for each pair of kinds
MOST_PAIRS = 50  # pairs, of particles or of kinds, up to which each is treated by itself
NEAR = 0.04  # a factor this near to that of a common mistake in units is called so

# Factors by which scores are too large if forces are taken to be in kJ/mol per unit of length, and are not.
UNITS = {
    1
    / 4.184: "they are in kcal/mol per unit of length, and were taken for kJ/mol: multiply them by 4.184",
    4.184: "they were converted from kcal/mol twice, or are in kJ/mol and were taken for kcal/mol: divide "
    "them by 4.184",
    10.0: "they are per nanometre and the positions in Angstrom: divide them by 10, or give positions in nm",
    0.1: "they are per Angstrom and the positions in nanometres: multiply them by 10, or give positions in "
    "Angstrom",
    10
    / 4.184: "they are in kcal/mol per nanometre, and were taken for kJ/mol per Angstrom: multiply them by "
    "0.4184",
    41.84: "they are in kJ/mol per nanometre, and were taken for kcal/mol per Angstrom: divide them by 41.84",
    1
    / 41.84: "they are in kcal/mol per Angstrom, and were taken for kJ/mol per nanometre: multiply them by "
    "41.84",
    1
    / 96.485: "they are in eV per unit of length, and were taken for kJ/mol: multiply them by 96.485",
    10
    / 96.485: "they are in eV per Angstrom with positions in nm, or the reverse: give both in one system",
    1
    / 4961.5: "they are in Hartree/Bohr, and were taken for kJ/mol per Angstrom: multiply them by 4961.5",
}


class Particles(AbstractSpace):
    r"""Positions of particles in a periodic box, or in free space, with forces among them.

    Draws are the positions, three columns for each particle, wrapped into the box or not; the scores are
    forces over $k_B T$. Control variates and the audit use distances between particles, by the nearest image.
    A common translation does not matter, so the centre of mass may be fixed.

    Args:
        box: the sides of a rectangular periodic box; `np.inf` in all directions for free space.
        kinds: the kind of each particle, such as its element; all equal by default.
        molecules: the number of the molecule of each particle, which `pair_distribution` leaves out.
        bonds: pairs of bonded particles, which determine the particles that turn with a dihedral.
        temperature: the temperature that forces were divided by, for the messages of the audit.

    >>> import numpy as np
    >>> space = Particles((2.0, 2.0, 2.0))
    >>> space.distances(2).pairs
    (array([0]), array([1]))
    """

    box: tuple[float, ...] = eqx.field(
        static=True, converter=lambda sides: tuple(map(float, sides)), default=(np.inf,) * 3
    )
    kinds: tuple[str, ...] = eqx.field(static=True, converter=tuple, default=())
    molecules: tuple[int, ...] = eqx.field(static=True, converter=tuple, default=())
    bonds: tuple[tuple[int, int], ...] = eqx.field(static=True, converter=tuple, default=())
    temperature: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if not self.box or not all(side > 0 for side in self.box):
            raise ValueError(
                f"Particles({self.box}): give the sides of the box, positive numbers, or np.inf for none."
            )

    @property
    def domain(self) -> str:
        return "particles"

    @property
    def has_marginals(self) -> bool:
        return False

    @property
    def operator(self) -> ParticleLangevin:
        return ParticleLangevin()

    @property
    def potential_operator(self) -> ParticleLangevin:
        return ParticleLangevin(on_fields=False)

    def count(self, dim: int) -> int:
        """Compute the number of particles in draws of a dimension."""
        return dim // len(self.box)

    def distances(self, count: int, between: tuple[str, str] | None = None) -> Distances:
        """Create the distances of all pairs of `count` particles, or of two kinds, within molecules too."""
        return Distances(self.box, self.kinds or ("",) * count, between)

    def check(self, draws: Chains) -> None:
        sides, dim = len(self.box), draws.shape[2]
        if dim % sides or dim < 2 * sides:
            raise ValueError(
                f"Particles: draws of {dim} columns in a box of {sides} sides: give the positions of two or "
                f"more particles, {sides} columns for each."
            )
        for what in ("kinds", "molecules"):
            given = getattr(self, what)
            if given and len(given) != dim // sides:
                raise ValueError(
                    f"Particles: {len(given)} {what} for {dim // sides} particles: give one for each."
                )
        self._refuse_rigid(draws.reshape(-1, dim))

    def _refuse_rigid(self, x: Points) -> None:
        """Refuse draws in which two particles are always equally far apart."""
        if len(x) < LOOKED:
            return
        some = np.asarray(x[np.linspace(0, len(x) - 1, LOOKED).astype(int)], np.float64)
        distances = self.distances(self.count(x.shape[1]))
        first, second = distances.pairs
        low, high = np.full(len(first), np.inf), np.zeros(len(first))
        for each in some:  # one by one: there may be many pairs
            r = np.linalg.norm(distances.separation(each, first, second), axis=-1)
            low, high = np.minimum(low, r), np.maximum(high, r)
        rigid = np.flatnonzero((high - low <= RIGID * high) & (high > 0))
        if len(rigid):
            pair = int(first[rigid[0]]), int(second[rigid[0]])
            raise ValueError(
                f"Particles: the distance of particles {pair[0]} and {pair[1]} never changes, nor do those "
                f"of {len(rigid) - 1} other pairs: bonds are rigid, and the forces that keep them so are not "
                "among those given. Simulate without constraints (OpenMM: constraints=None, rigidWater="
                "False; GROMACS: constraints = none and flexible water; LAMMPS: no fix shake), or, if whole "
                "molecules are rigid, give each as one particle: from_mdanalysis(..., rigid=True)."
            )

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero, $\sum_a (W'(r_a) + W(r_a)\, b_a \cdot s) / r_a^2$ over pairs.

        Each has root mean square 1. For every two kinds there are a few functions $W$ that vanish at both
        ends: see `FieldsAlong`.
        """
        return unit_size(self._series(draws, scores)[0])

    def _series(self, draws: Chains, scores: Chains) -> tuple[AnyArray, AnyArray]:
        """Compute the series of the identities, and the same without forces."""
        chains, length, dim = draws.shape
        x, s = draws.reshape(-1, dim), scores.reshape(-1, dim)
        found = []
        coordinates = self._coordinates(dim)
        tested = max(TESTED // len(coordinates), 2)
        for coordinate in coordinates:
            pushed = coordinate.pushed(x, s)
            nodes = np.linspace(pushed.value.min(), pushed.value.max(), tested + 2)
            heights, volumes = np.eye(len(nodes))[:, 1:-1], np.diff(coordinate.volume(nodes))
            both = (pushed, pushed._replace(force=np.zeros_like(pushed.force)))
            all_sums = (sums(coordinate, each, len(x), nodes) for each in both)
            found.append([each.images(heights, volumes) for each in all_sums])
        whole, without = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        size = np.maximum(whole.std(axis=0), np.finfo(np.float64).tiny)
        towards = without.mean(axis=0) / size**2  # in the direction of which a factor shows most
        joined = (np.c_[each, each @ towards] for each in (whole, without))
        whole, without = (each.reshape(chains, length, -1) for each in joined)
        return whole, without

    def _coordinates(self, dim: int) -> list[Distances]:
        """Create distances of single pairs if there are few, of each two kinds, or of all pairs together."""
        count = self.count(dim)
        kinds = self.kinds or ("",) * count
        if count * (count - 1) // 2 <= MOST_PAIRS and not self.molecules:
            kinds = tuple(map(str, range(count)))
            pairs = [(kinds[i], kinds[j]) for i in range(count) for j in range(i + 1, count)]
        else:
            pairs = list(combinations_with_replacement(sorted(set(kinds)), 2))
        if len(pairs) > MOST_PAIRS:
            return [Distances(self.box, kinds, None, self.molecules)]
        every = (Distances(self.box, kinds, pair, self.molecules) for pair in pairs)
        return [each for each in every if len(each.pairs[0])]

    def repairs(self, draws: Chains, scores: Chains) -> Iterator[Repair]:
        factor = factor_of(*self._series(draws, scores))
        if factor < 0:
            message = (
                "the forces have the wrong sign: the identities hold for their negatives. A force is minus "
                "the gradient of the potential energy."
            )
            yield Repair("sign", draws, -scores, message)
        for repair in shifted(draws, scores):
            if factor_of(*self._series(repair.draws, repair.scores)) > factor:
                yield repair
        if factor > 0:
            yield Repair("tempered", draws, scores / factor, self._wrong(factor), fitted=1)

    def _wrong(self, factor: float) -> str:
        """Describe forces that are too large by a factor."""
        cause = min(UNITS, key=lambda known: abs(np.log(factor / known)))
        head = f"the forces over kT are {factor:.3g} times those of the positions' density: "
        if abs(factor / cause - 1) < NEAR:
            return f"{head}wrong units. It seems that {UNITS[cause]}."
        given = self.temperature
        about = "" if given is None else f", {factor * given:.4g} K and not {given:.4g} K"
        return (
            f"{head}the temperature of the simulation was about {factor:.3g} times the one given{about}. "
            "Give the temperature of its thermostat. If that is right, the forces are of another potential, "
            "with a part left out or a bias added, or the simulation does not sample the canonical ensemble: "
            "a time step too long, a thermostat that couples weakly or rescales velocities, no equilibration."
        )

    def family(self, n: int, dim: int) -> AbstractLinearFamily:
        coordinates = self._coordinates(dim)
        each = max(min(NODES, n // DRAWS_PER_NODE) // len(coordinates), 3)
        parts: list[Any] = [FieldsAlong(coordinate, each) for coordinate in coordinates]
        return reduce(lambda one, other: one + other, parts)

    def __repr__(self) -> str:
        if np.isinf(self.box).all():
            return "Particles in free space"
        return f"Particles in a box of sides {listed([f'{side:g}' for side in self.box])}"
