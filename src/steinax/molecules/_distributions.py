"""Distributions in molecular simulations from forces: pairs, density profiles, angles and dihedrals."""

from collections.abc import Sequence

import numpy as np

from .._types import AnyArray
from ..auditing import AuditMode, audited
from ..chains import chain_statistics
from ..data import Sample
from ..estimation import Estimate, estimate, from_statistics, with_audit
from ..families import AbstractFamily
from ._coordinates import (
    AbstractCoordinate,
    Angle,
    Dihedral,
    Distances,
    FieldsAlong,
    Positions,
    sides_of,
    sums,
)
from ._particles import Particles

NODES = 30  # most nodes of the fields that are fitted
DRAWS_PER_NODE = 10
RARE = 2  # configurations for each pair that is nearer than the core
CORE = 10.0  # times as many pairs expected without a repulsion, that show that there is one

type Bins = int | Sequence[float] | np.ndarray


def pair_distribution(
    sample: Sample,
    bins: Bins = 200,
    *,
    between: tuple[str, str] | None = None,
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> Estimate:
    r"""Estimate the pair distribution function $g(r)$ in bins, from forces.

    With $c_k$ the number of pairs at a distance in bin $k$ and $v_k$ its volume,
    $g_k = E[c_k]\, V / (N_p v_k)$, with $N_p$ the number of pairs. A histogram averages $c_k$. Here a
    function of mean zero is subtracted, the image of a field along all distances. It contains the
    indicator of the bin, and so replaces it by forces, whose average does not become noisier as bins
    become narrower (Borgis et al., 2013; de las Heras and Schmidt, 2018). Smooth fields are then fitted
    to the residual, on frames other than those that are averaged.

    Args:
        sample: positions and forces in a periodic box, from `from_openmm` or `from_mdanalysis`.
        bins: edges, in the unit of the positions, up to half the shortest side; or how many bins.
        between: two kinds of particles; all pairs by default. Pairs within a molecule are left out.
        family: the family that is fitted; fields along the same distances by default.
        audit: see `estimate`.

    Returns:
        An estimate with a row for each bin, named by its middle; the plain averages are the histogram.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).uniform(size=(4, 50, 20 * 3))  # an ideal gas
    >>> sample = sx.Sample(x, 0 * x, space=Particles((1.0, 1.0, 1.0)))
    >>> g = pair_distribution(sample, [0.2, 0.3, 0.4], audit="off")
    >>> g.names, bool(np.all(abs(g.value - 1) < 0.1))
    (('g(0.25)', 'g(0.35)'), True)
    """
    space = _space(sample)
    if not np.isfinite(space.box).all():
        raise ValueError(
            "pair_distribution: particles in free space have no density to compare with: give a sample in a "
            "periodic box, or sx.estimate a histogram of a distance."
        )
    kinds = space.kinds or ("",) * space.count(sample.dim)
    if between is not None and not set(between) <= set(kinds):
        raise ValueError(
            f"pair_distribution: between={between!r}, and the kinds are {', '.join(sorted(set(kinds)))}."
        )
    coordinate = Distances(space.box, kinds, between, space.molecules)
    edges = _edges(bins, 0.0, coordinate.reach)
    if edges[-1] > coordinate.reach * (1 + 1e-9) or edges[0] < 0:
        raise ValueError(
            f"pair_distribution: bins from {edges[0]:g} to {edges[-1]:g}: give edges between 0 and half the "
            f"shortest side of the box, {coordinate.reach:g}, beyond which a pair has several images."
        )
    shells = np.diff(edges ** len(space.box)) * _unit_ball(len(space.box))
    scale = np.prod(space.box) / (len(coordinate.pairs[0]) * shells)
    whole = np.unique([0.0, *edges, coordinate.reach])
    core = _core(coordinate, sample)
    if family is None:
        start = () if core is None else (0.0,)
        inner = np.linspace(core or 0.0, coordinate.reach, _nodes(sample))
        family = FieldsAlong(coordinate, (*start, *inner.tolist()), core is not None)
    return _distribution(sample, coordinate, edges, whole, scale, "g", family, core, audit)


def density_profile(
    sample: Sample,
    bins: Bins = 100,
    *,
    axis: int = 2,
    kind: str | None = None,
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> Estimate:
    r"""Estimate the number density along a side of the box, from the forces along it.

    The average of a bin is replaced by that of $\sum_i W(z_i)\, s_{i,z}$ and a constant, with $W$ continuous
    and periodic (Borgis et al., 2013; de las Heras and Schmidt, 2018).

    Args:
        sample: positions and forces in a periodic box.
        bins: edges from 0 to the side of the box; or how many bins.
        axis: 0, 1 or 2.
        kind: of the particles that are counted; all by default.
        family: the family that is fitted; fields along the same positions by default.
        audit: see `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).uniform(size=(4, 50, 20 * 3))
    >>> sample = sx.Sample(x, 0 * x, space=Particles((1.0, 1.0, 1.0)))
    >>> density_profile(sample, 2, audit="off").value.round(6).tolist()
    [20.0, 20.0]
    """
    space = _space(sample)
    if not -len(space.box) <= axis < len(space.box) or not np.isfinite(space.box[axis]):
        raise ValueError(f"density_profile: axis={axis}: give a side of a periodic box, such as 2.")
    axis %= len(space.box)
    count = space.count(sample.dim)
    kinds = np.array(space.kinds or ("",) * count)
    which = np.arange(count) if kind is None else np.flatnonzero(kinds == kind)
    if not len(which):
        raise ValueError(
            f"density_profile: no particle is of kind {kind!r}: there are {', '.join(sorted(set(kinds)))}."
        )
    coordinate = Positions(space.box, axis, tuple(which.tolist()))
    edges = _edges(bins, 0.0, space.box[axis])
    scale = space.box[axis] / (np.prod(space.box) * np.diff(edges))
    return _periodic(sample, coordinate, edges, scale, "density", family, audit)


def dihedral_distribution(
    sample: Sample,
    particles: tuple[int, int, int, int],
    bins: Bins = 72,
    *,
    moving: Sequence[int] | None = None,
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> Estimate:
    r"""Estimate the density of a dihedral angle, in bins from $-\pi$ to $\pi$, from torques about its bond.

    The field turns the side of the molecule that has the last particle about the bond in the middle. It
    changes no bond and no angle of either side, so that their stiff forces do not contribute.

    Args:
        sample: positions and forces.
        particles: the four that define the dihedral.
        bins: edges in radians from $-\pi$ to $\pi$; or how many bins.
        moving: the particles that turn; by default those on the side of the last one, by the bonds of the
            sample's space.
        family: that is fitted; fields along the same angle by default.
        audit: see `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 4 * 3))
    >>> sample = sx.Sample(x, -x, space=Particles())
    >>> density = dihedral_distribution(sample, (0, 1, 2, 3), 4, moving=(3,))
    >>> bool(abs(density.value.mean() - 1 / (2 * np.pi)) < 1e-3)
    True
    """
    moving = _moving(sample, particles, 4, moving)
    coordinate = Dihedral(_space(sample).box, tuple(particles), moving)
    edges = _edges(bins, -np.pi, np.pi)
    return _periodic(sample, coordinate, edges, 1 / np.diff(edges), "density", family, audit)


def angle_distribution(
    sample: Sample,
    particles: tuple[int, int, int],
    bins: Bins = 60,
    *,
    moving: Sequence[int] | None = None,
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> Estimate:
    r"""Estimate the density of an angle, in bins from 0 to $\pi$, from the torque that bends it.

    The density is that of the angle itself: its volume, $\sin\theta$, is not divided out.

    Args:
        sample: positions and forces.
        particles: the three that define the angle, its vertex second.
        bins: edges in radians between 0 and $\pi$; or how many bins.
        moving: the particles that turn with the last one; by default those on its side, by the bonds of the
            sample's space.
        family: that is fitted; fields along the same angle by default.
        audit: see `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 3 * 3))
    >>> sample = sx.Sample(x, -x, space=Particles())
    >>> density = angle_distribution(sample, (0, 1, 2), 4, moving=(2,))
    >>> density.value.shape
    (4,)
    """
    moving = _moving(sample, particles, 3, moving)
    coordinate = Angle(_space(sample).box, tuple(particles), moving)
    edges = _edges(bins, 0.0, np.pi)
    whole = np.unique([0.0, *edges, np.pi])
    return _distribution(
        sample, coordinate, edges, whole, 1 / np.diff(edges), "density", family, None, audit
    )


def _space(sample: Sample) -> Particles:
    if not isinstance(sample.space, Particles):
        raise ValueError(
            "this needs the positions of particles and the forces on them: give a sample of from_openmm or "
            "from_mdanalysis, or Sample(positions, forces / kT, space=steinax.molecules.Particles(box))."
        )
    return sample.space


def _moving(
    sample: Sample, particles: Sequence[int], count: int, moving: Sequence[int] | None
) -> tuple[int, ...]:
    """Find the particles that turn, from the bonds of the space unless they are given."""
    space, among = _space(sample), range(_space(sample).count(sample.dim))
    if len(set(particles)) != count or not set(particles) <= set(among):
        raise ValueError(
            f"particles={tuple(particles)}: give {count} different particles, counted from 0 to {among[-1]}."
        )
    if moving is None:
        if not space.bonds:
            raise ValueError(
                "the sample's space has no bonds, so the particles that turn are unknown: give them as "
                "moving=, or give the simulation a topology with bonds."
            )
        moving = sides_of(space.bonds, particles[-2], particles[-1])
    fixed = set(particles[:-1]) & set(moving)
    if particles[-1] not in moving or fixed:
        raise ValueError(
            f"the particles that turn are {tuple(moving)}: they must contain the last, {particles[-1]}, and "
            f"none of {tuple(particles[:-1])}. Where the bond is in a ring, or not among the bonds, give "
            "those that turn as moving=."
        )
    return tuple(moving)


def _edges(bins: Bins, low: float, high: float) -> np.ndarray:
    edges = np.linspace(low, high, bins + 1) if isinstance(bins, int) else np.asarray(bins, float)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise ValueError("bins: give how many, or their edges in increasing order.")
    return edges


def _unit_ball(dim: int) -> float:
    """Compute the volume of a ball of radius 1 in 1, 2 or 3 dimensions."""
    return {1: 2.0, 2: np.pi, 3: 4 * np.pi / 3}[dim]


def _nodes(sample: Sample) -> int:
    return int(np.clip(sample.size // DRAWS_PER_NODE, 4, NODES))


def _core(coordinate: Distances, sample: Sample) -> float | None:
    """Find a distance within which there are hardly any pairs; None without a sign of repulsion.

    It is such that one configuration in two has a pair within, if there were many more without a repulsion.
    """
    value = coordinate.pushed(sample.x, np.zeros_like(sample.x)).value
    rare = sample.size // RARE
    if len(value) <= rare:
        return None
    core = float(np.partition(value, rare)[rare])
    expected = len(value) * (core / coordinate.reach) ** len(coordinate.box)
    return core if expected > CORE * rare and value.min() > core / 2 else None


def _periodic(
    sample: Sample,
    coordinate: AbstractCoordinate,
    edges: np.ndarray,
    scale: np.ndarray,
    label: str,
    family: AbstractFamily | None,
    audit: AuditMode,
) -> Estimate:
    """Estimate the density of a coordinate with a period."""
    low, high = coordinate.ends(sample.x)
    if edges[0] < low - 1e-9 or edges[-1] > high + 1e-9:
        raise ValueError(
            f"bins from {edges[0]:g} to {edges[-1]:g}: give edges from {low:g} to {high:g}."
        )
    whole = np.unique(np.clip([low, *edges, high], low, high))
    return _distribution(sample, coordinate, edges, whole, scale, label, family, None, audit)


def _distribution(
    sample: Sample,
    coordinate: AbstractCoordinate,
    edges: np.ndarray,
    whole: np.ndarray,
    scale: np.ndarray,
    label: str,
    family: AbstractFamily | None,
    core: float | None,
    audit: AuditMode,
) -> Estimate:
    """Estimate the density in bins: subtract the images of their kinks, and fit a family to the residual.

    Args:
        sample: the draws.
        coordinate: whose density it is.
        edges: of the bins.
        whole: a grid from end to end of the coordinate that contains the edges.
        scale: from counts to densities, (bins,).
        label: what the density is called.
        family: fitted to counts less images; fields along the coordinate by default.
        core: a distance within which there are no values, if there is one.
        audit: see `estimate`.
    """
    report = audited(sample, audit)
    found = sums(coordinate, coordinate.pushed(sample.x, sample.score), sample.size, whole)
    first = int(np.searchsorted(whole, edges[0]))
    bins = slice(first, first + len(edges) - 1)
    volumes = np.diff(coordinate.volume(whole))
    images = found.images(_kinks(volumes, bins, core is not None), volumes)
    counts = found.count[:, bins] * scale
    values = counts - images * scale
    shape = sample.draws.shape[:2]
    names = [f"{label}({middle:.6g})" for middle in (edges[1:] + edges[:-1]) / 2]
    wanted = {name: column.reshape(shape) for name, column in zip(names, values.T, strict=True)}
    along = FieldsAlong(coordinate, _nodes(sample)) if family is None else family
    controlled = estimate(wanted, sample, along, audit="off")
    plain = chain_statistics(counts.reshape(*shape, -1))
    result = from_statistics(
        controlled._statistics()[0],
        plain,
        controlled.names,
        tuple(f"forces + {chosen}" for chosen in controlled.chosen),
        controlled.note,
        controlled.reason,
        (
            *controlled.references,
            "borgis2013computation",
            "delasheras2018better",
            "coles2021reduced",
        ),
        constants=controlled.names,  # no draw has particles in a core
    )
    return with_audit(result, report, audit)


def _kinks(volumes: np.ndarray, bins: slice, core: bool) -> AnyArray:
    """Compute the heights of W at the edges, (cells + 1, bins), with slope 1 in the volume of a bin.

    They return to zero at the end by a slope everywhere, or begin at minus the volume of the bin where there
    is a core.
    """
    width = volumes[bins]
    slopes = np.eye(len(volumes))[:, bins] * volumes[:, None]
    if not core:
        slopes = slopes - np.outer(volumes, width) / volumes.sum()
    start = -width if core else np.zeros_like(width)
    return np.concatenate([start[None], start + np.cumsum(slopes, axis=0)])
