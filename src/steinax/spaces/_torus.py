"""The torus: periodic boxes, and angles, with its operator and trigonometric polynomials."""

from collections.abc import Iterator
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._numerics import as_leaf, namespace
from .._types import AnyArray, Chains, Point, Points, PyTree
from ..auditing import Repair, divided, sign
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, check_potentials
from ..operators import AbstractOperator
from ._common import (
    DRAWS_PER_CANDIDATE,
    HIGHEST,
    AbstractWalledLangevin,
    affordable,
    candidates,
    factor_of,
    pair_products,
    polynomial_and_kernel,
    unit_size,
)


class Seam(eqx.Module):
    r"""A diagonal matrix field on a torus that is zero where the coordinates jump, and periodic.

    $$ b_i(x) = 1 - \delta \cos\bigl(2 \pi (x_i - l_i) / L_i\bigr) $$

    With $\delta = 1$ it vanishes at $l_i$ and $l_i + L_i$, the same point of the torus; with $\delta = 0$ it
    is 1 everywhere, for functions that are periodic themselves.

    Args:
        lengths: $L$, one number for all coordinates or one for each.
        lower: $l$.
        depth: $\delta$, 0 or 1.

    >>> Seam(1.0)(jnp.array([0.0, 0.5])).tolist()
    [0.0, 2.0]
    """

    lengths: AnyArray = eqx.field(converter=as_leaf)
    lower: AnyArray = eqx.field(converter=as_leaf, default=0.0)
    depth: float = eqx.field(static=True, default=1.0)

    def __call__(self, x: Point) -> jax.Array:
        lower, lengths = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.lengths, x.dtype)
        return 1 - self.depth * jnp.cos(2 * jnp.pi * (x - lower) / lengths)


class TorusLangevin(AbstractWalledLangevin):
    r"""The Langevin operator on a torus, for functions that need not be periodic.

    $$ \mathcal{L} u = \nabla \cdot (b\, u) + b\, u \cdot \nabla \log \pi, \qquad
       \mathcal{L} v = \nabla \cdot (b\, \nabla v) + b\, \nabla v \cdot \nabla \log \pi $$

    with $b$ the `Seam`: a function of the coordinates jumps where they do, and $b$ is zero there. Functions
    that are periodic, such as `Trigonometric`, need no seam.

    Args:
        lengths: the periods, one for all coordinates or one for each.
        lower: where the coordinates begin.
        on_fields: whether it acts on vector fields rather than on potentials.
        periodic: whether the functions are periodic, so that $b = 1$. It is not checked.

    >>> operator = TorusLangevin(1.0, on_fields=False)
    >>> round(float(operator(lambda x: x[0], jnp.array([0.25]), jnp.zeros(1))), 4)  # b' is 2 pi
    6.2832
    """

    walls: Seam
    on_fields: bool = eqx.field(static=True)

    def __init__(
        self,
        lengths: float | AnyArray,
        lower: float | AnyArray = 0.0,
        on_fields: bool = True,
        periodic: bool = False,
    ):
        self.walls = Seam(lengths, lower, 0.0 if periodic else 1.0)
        self.on_fields = on_fields

    @property
    def domain(self) -> str:
        return torus_domain(self.walls.lengths, self.walls.lower)

    def moved(self, shift: Point, scale: Point) -> "TorusLangevin":
        lengths, lower = self.walls.lengths / scale, (self.walls.lower - shift) / scale
        return TorusLangevin(lengths, lower, self.on_fields, self.walls.depth == 0.0)


def torus_domain(lengths: AnyArray, lower: AnyArray) -> str:
    """Return the name of the domain of a torus, which includes its lengths."""
    return f"the torus of lengths {np.asarray(lengths).tolist()} from {np.asarray(lower).tolist()}"


class Trigonometric(AbstractLinearFamily):
    r"""Trigonometric polynomials of several angles: all waves of total frequency up to `degree`.

    The potentials are $\cos(k \cdot \theta)$ and $\sin(k \cdot \theta)$ with $\theta_i = 2 \pi x_i / L_i$
    and integers $k \ne 0$, one of each pair $\pm k$, such that $\sum_i |k_i|$ is at most `degree`.

    Args:
        degree: 1 or more.
        operator: `TorusLangevin(lengths, lower, on_fields=False, periodic=True)`.

    >>> operator = TorusLangevin(2 * np.pi, on_fields=False, periodic=True)
    >>> Trigonometric(2, operator).size(None, 2)  # k: (0,1), (0,2), (1,-1), (1,0), (1,1), (2,0)
    12
    """

    degree: int = eqx.field(static=True)
    operator: AbstractOperator

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"Trigonometric({self.degree}): the degree must be 1 or more.")
        check_potentials(self)
        if not isinstance(self.operator, TorusLangevin):
            raise TypeError(
                f"Trigonometric: the operator is {self.operator!r}: give TorusLangevin(lengths, lower, "
                "on_fields=False, periodic=True)."
            )

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return 2 * len(frequencies(dim, self.degree))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        phase = self._waves(x.shape[0]) @ (x - self._walls.lower)
        return jnp.concatenate([jnp.cos(phase), jnp.sin(phase)])

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        if self._walls.depth:
            return super().feature_matrix(state, x, score)
        xp, waves = namespace(x), self._waves(x.shape[1])
        phase, push = (x - self._walls.lower) @ waves.T, score @ waves.T
        cos, sin, square = xp.cos(phase), xp.sin(phase), (waves**2).sum(axis=1)
        return xp.concat([-square * cos - push * sin, push * cos - square * sin], axis=1)

    @property
    def _walls(self) -> Seam:
        assert isinstance(self.operator, TorusLangevin)
        return self.operator.walls

    def _waves(self, dim: int) -> AnyArray:
        """The gradients of the phases, (waves, dim)."""
        return 2 * np.pi * frequencies(dim, self.degree) / self._walls.lengths

    @property
    def is_parametric(self) -> bool:
        return True


def frequencies(dim: int, degree: int) -> np.ndarray:
    """List the integer vectors of absolute sum 1 to `degree`, one of each pair k and -k: (count, dim)."""
    zero = (0,) * dim
    if dim > 6:  # a product over all dimensions would be too long
        unit = np.eye(dim, dtype=int)
        return np.concatenate([k * unit for k in range(1, degree + 1)])
    steps = product(range(-degree, degree + 1), repeat=dim)
    return np.array([k for k in steps if zero < k and sum(map(abs, k)) <= degree])


class Torus(AbstractSpace):
    r"""A torus: coordinates with periods, such as angles or positions in a periodic box.

    Draws and scores are given in coordinates between $l_i$ and $l_i + L_i$, the density with respect to them.
    It is periodic, so that there is no boundary. Positions of many particles that attract or repel each other
    are better given as `steinax.molecules.Particles`, where the distances between them count.

    Args:
        lengths: $L$, the period of all coordinates or of each.
        lower: $l$, where they begin.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).vonmises(0.0, 2.0, size=(4, 250, 1))
    >>> space = sx.spaces.Torus(2 * np.pi, -np.pi)
    >>> sample = sx.Sample(x, -2 * np.sin(x), space=space)
    >>> est = sx.estimate(lambda x: jnp.cos(x[0]), sample)
    >>> bool(abs(est.value[0] - 0.6977746579640077) < 1e-4), bool(est.worth[0] > 1e6)
    (True, True)
    """

    lengths: Float[AnyArray, "*dim"] = eqx.field(converter=as_leaf)
    lower: Float[AnyArray, "*dim"] = eqx.field(converter=as_leaf, default=0.0)

    def __check_init__(self) -> None:
        if not (np.all(self.lengths > 0) and np.isfinite(self.lengths).all()):
            raise ValueError(
                f"Torus({self.lengths}): give positive periods, such as 2 * np.pi or the sides of the box."
            )

    @property
    def domain(self) -> str:
        return torus_domain(self.lengths, self.lower)

    @property
    def operator(self) -> TorusLangevin:
        return TorusLangevin(self.lengths, self.lower)

    @property
    def potential_operator(self) -> TorusLangevin:
        return TorusLangevin(self.lengths, self.lower, on_fields=False)

    def check(self, draws: Chains) -> None:
        dim = draws.shape[2]
        given = max(self.lengths.size, self.lower.size)
        if given not in (1, dim):
            raise ValueError(f"Torus: {given} periods for {dim} dimensions: give one for each.")
        outside = (draws < self.lower) | (draws > self.lower + self.lengths)
        if outside.any():
            raise ValueError(
                f"{int(outside.any(axis=2).sum())} draws lie outside {self.domain}: give them wrapped, "
                "lower + (draws - lower) % lengths, with their scores as they are."
            )

    def coordinates(self, x: Points) -> tuple[AnyArray, AnyArray]:
        """Angles: the shift is where coordinates begin, and the scale the period over 2 pi."""
        ones = np.ones(x.shape[1])
        return self.lower * ones, self.lengths / (2 * np.pi) * ones

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero, $\varphi'(\theta_i) + \varphi(\theta_i)\, t_i$, and pairs.

        Each has root mean square 1. $\theta$ are the angles, $t$ their scores, and $\varphi$ is 1, and the
        cosine and sine of $\theta$ and $2 \theta$.
        """
        return unit_size(self._series(draws, scores))

    def _series(self, draws: Chains, scores: Chains) -> AnyArray:
        scale = self.lengths / (2 * np.pi)
        angle, t = (draws - self.lower) / scale, scores * scale
        series = [t]
        for k in (1, 2):
            cos, sin = np.cos(k * angle), np.sin(k * angle)
            series += [cos * t - k * sin, sin * t + k * cos]
        for wave in (np.cos(angle), np.sin(angle)):
            series += pair_products(t, wave)
        return np.concatenate(series, axis=2)

    def repairs(self, draws: Chains, scores: Chains) -> Iterator[Repair]:
        yield from sign(draws, scores, ())
        whole, without = (self._series(draws, each) for each in (scores, 0 * scores))
        yield from divided(draws, scores, factor_of(whole, without))

    def family(self, n: int, dim: int) -> AbstractLinearFamily:
        return polynomial_and_kernel(self._waves, self._kernel, n, dim)

    def families(self, n: int, dim: int) -> tuple[AbstractLinearFamily, ...]:
        degrees = range(1, HIGHEST + 1)
        waves = affordable(self._waves, degrees, n, dim, DRAWS_PER_CANDIDATE)
        return candidates(waves, self._kernel, dim)

    def _waves(self, degree: int) -> Trigonometric:
        operator = TorusLangevin(self.lengths, self.lower, on_fields=False, periodic=True)
        return Trigonometric(degree, operator)

    @property
    def _kernel(self) -> KernelTranslates:
        return KernelTranslates(operator=self.operator)

    def __repr__(self) -> str:
        return f"Torus({self.lengths.tolist()}, {self.lower.tolist()})"
