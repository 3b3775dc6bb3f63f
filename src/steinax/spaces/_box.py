"""Boxes: draws between bounds, and operators on functions that need not vanish at the faces."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._numerics import as_leaf, precision
from .._types import AnyArray, Chains, Point, Points
from ..auditing import standardised
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, Polynomial
from ._common import (
    DRAWS_PER_CANDIDATE,
    HIGHEST,
    HIGHEST_IN_TAILS,
    AbstractWalledLangevin,
    affordable,
    candidates,
    pair_products,
    polynomial_and_kernel,
    unit_size,
)


class WallDistance(eqx.Module):
    r"""A diagonal matrix field that is zero on every face of a box, and positive inside.

    $$ b_i(x) = \frac{(x_i - l_i)(h_i - x_i)}{h_i - l_i}, \qquad x_i - l_i, \qquad h_i - x_i, \qquad 1 , $$

    if both bounds are finite, only the lower one, only the upper one, or none.

    Args:
        lower: $l$, one number for all coordinates or one for each.
        upper: $h$.

    >>> upper = jnp.array([1.0, jnp.inf])
    >>> WallDistance(0.0, upper)(jnp.array([0.5, 3.0])).tolist()
    [0.25, 3.0]
    """

    lower: AnyArray = eqx.field(converter=as_leaf)
    upper: AnyArray = eqx.field(converter=as_leaf)

    def __call__(self, x: Point) -> jax.Array:
        lower, upper = jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype)
        below, above = jnp.isfinite(lower), jnp.isfinite(upper)
        # a difference of infinities would have a derivative of NaN
        low, high = jnp.where(below, lower, 0.0), jnp.where(above, upper, 0.0)
        width = jnp.where(below & above, high - low, 1.0)
        return jnp.where(below, x - low, 1.0) * jnp.where(above, high - x, 1.0) / width


class BoxLangevin(AbstractWalledLangevin):
    r"""The Langevin operator on a box, for functions that need not vanish at its faces.

    $$ \mathcal{L} u = \nabla \cdot (b\, u) + b\, u \cdot \nabla \log \pi, \qquad
       \mathcal{L} v = \nabla \cdot (b\, \nabla v) + b\, \nabla v \cdot \nabla \log \pi $$

    with $b$ the `WallDistance`: the operator of a diffusion that stops at the faces. Without $b$,
    integration by parts leaves $\oint u\, \pi$ over the faces, and the mean is not zero unless the density
    vanishes there. For beta and gamma densities $b\, \nabla \log \pi$ is linear, so that polynomials are
    exact on polynomials.

    Args:
        lower: the lower bounds, one for all coordinates or one for each; may be infinite.
        upper: the upper bounds.
        on_fields: whether it acts on vector fields rather than on potentials.

    >>> x = jnp.array([0.25])
    >>> operator = BoxLangevin(0.0, 1.0, on_fields=False)
    >>> float(operator(lambda x: x[0], x, jnp.zeros(1)))  # of the uniform: 1 - 2 x
    0.5
    """

    walls: WallDistance
    on_fields: bool = eqx.field(static=True)

    def __init__(self, lower: float | AnyArray, upper: float | AnyArray, on_fields: bool = True):
        self.walls = WallDistance(lower, upper)
        self.on_fields = on_fields

    @property
    def domain(self) -> str:
        return box_domain(self.walls.lower, self.walls.upper)

    def moved(self, shift: Point, scale: Point) -> "BoxLangevin":
        lower, upper = ((bound - shift) / scale for bound in (self.walls.lower, self.walls.upper))
        return BoxLangevin(lower, upper, self.on_fields)


def box_domain(lower: AnyArray, upper: AnyArray) -> str:
    """Return the name of the domain of a box, which includes its bounds."""
    return f"the box from {np.asarray(lower).tolist()} to {np.asarray(upper).tolist()}"


class Box(AbstractSpace):
    r"""A box $\prod_i [l_i, h_i]$ of finite or infinite bounds: probabilities, scales, truncated parameters.

    Draws and scores are given on the box itself: no transform, and no Jacobian. The density need not vanish
    at the faces, and may be infinite there: the operators of the box (`BoxLangevin`) allow for that.

    Args:
        lower: $l$, one number for all dimensions or one for each.
        upper: $h$.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).beta(0.7, 2.0, size=(4, 250, 1))
    >>> sample = sx.Sample(x, -0.3 / x - 1 / (1 - x), space=sx.spaces.Box(0.0, 1.0))
    >>> est = sx.estimate("x", sample)
    >>> bool(abs(est.value[0] - 0.7 / 2.7) < 1e-10)
    True
    """

    lower: Float[AnyArray, "*dim"] = eqx.field(converter=as_leaf, default=0.0)
    upper: Float[AnyArray, "*dim"] = eqx.field(converter=as_leaf, default=np.inf)

    def __check_init__(self) -> None:
        lower, upper = self.lower, self.upper
        if max(lower.ndim, upper.ndim) > 1 or (
            lower.ndim == upper.ndim == 1 and len(lower) != len(upper)
        ):
            raise ValueError(
                f"Box: bounds of shapes {lower.shape} and {upper.shape}: give one number for all dimensions, "
                "or one for each."
            )
        if not np.all(lower < upper):
            raise ValueError(
                f"Box({lower}, {upper}): every lower bound must be less than the upper one; use -np.inf and "
                "np.inf where there is none."
            )

    @property
    def domain(self) -> str:
        return box_domain(self.lower, self.upper)

    @property
    def operator(self) -> BoxLangevin:
        return BoxLangevin(self.lower, self.upper)

    @property
    def potential_operator(self) -> BoxLangevin:
        return BoxLangevin(self.lower, self.upper, on_fields=False)

    def check(self, draws: Chains) -> None:
        dim = draws.shape[2]
        bounds = max(self.lower.size, self.upper.size)
        if bounds not in (1, dim):
            raise ValueError(f"Box: {bounds} bounds for {dim} dimensions: give one for each.")
        outside = (draws < self.lower) | (draws > self.upper)
        if outside.any():
            column = int(outside.any(axis=(0, 1)).argmax())
            raise ValueError(
                f"{int(outside.any(axis=2).sum())} draws lie outside {self.domain}, first in column {column}"
                ": give the draws on the box itself (not their logs or logits), or a larger box."
            )

    def coordinates(self, x: Points) -> tuple[AnyArray, AnyArray]:
        return x.mean(axis=0), x.std(axis=0)

    def unbounded(self, x: Chains, score: Chains) -> tuple[AnyArray, AnyArray] | None:
        r"""Transform to logits (two bounds) or log distances (one bound); None if a draw lies on a face.

        With $z(x)$ the new coordinate the score is $s\, x'(z) + (\log x'(z))'$.
        """
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        low = np.where(below, x - np.where(below, self.lower, 0.0), 1.0)
        high = np.where(above, np.where(above, self.upper, 0.0) - x, 1.0)
        if np.any(low <= 0) or np.any(high <= 0):
            return None
        width = np.where(below & above, self.upper - self.lower, 1.0)
        slope = low * high / width
        z = np.where(below | above, np.log(low) - np.log(high), x)
        log_slope = np.where(above, -low / width, 0.0) + np.where(below, high / width, 0.0)
        return z, score * slope + log_slope

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero, $\varphi'(x_i)\, b_i + \varphi(x_i)\, (b_i' + b_i s_i)$, and pairs.

        Each has root mean square 1. $\varphi$ is $1$, $y$, $\tanh y$ and $\cos 2 y$, with $y$ the
        standardised draws.
        """
        y, scale = standardised(draws)
        b, slope = self._walls(draws)
        drift, b = slope + b * scores, b / scale
        wave = np.cos(2 * y) * drift - 2 * np.sin(2 * y) * b
        bounded = np.tanh(y)
        single = [drift, y * drift + b, bounded * drift + (1 - bounded**2) * b, wave]
        return unit_size(np.concatenate([*single, *pair_products(drift, bounded)], axis=2))

    def family(self, n: int, dim: int) -> AbstractLinearFamily:
        return polynomial_and_kernel(self._polynomial, self._kernel, n, dim, self._highest)

    def families(self, n: int, dim: int) -> tuple[AbstractLinearFamily, ...]:
        degrees = range(1, self._highest + 1)
        polynomials = affordable(self._polynomial, degrees, n, dim, DRAWS_PER_CANDIDATE)
        return candidates(polynomials, self._kernel, dim, self._has_tails)

    def _polynomial(self, degree: int) -> Polynomial:
        return Polynomial(degree, operator=self.potential_operator)

    @property
    def _kernel(self) -> KernelTranslates:
        return KernelTranslates(operator=self.operator)

    @property
    def _highest(self) -> int:
        """The highest degree of polynomials: lower where a bound is infinite."""
        return HIGHEST_IN_TAILS if self._has_tails else HIGHEST

    @property
    def _has_tails(self) -> bool:
        """Whether some bound is infinite."""
        return not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    def _walls(self, draws: Chains) -> tuple[AnyArray, AnyArray]:
        """Compute the wall distance in every dimension, and its derivative in that dimension."""
        flat = draws.reshape(-1, draws.shape[2])
        distance = WallDistance(self.lower, self.upper)
        with precision(np.float64):
            both = jax.vmap(lambda x: jax.jvp(distance, (x,), (jnp.ones_like(x),)))(flat)
        b, slope = (np.asarray(array).reshape(draws.shape) for array in both)
        return b, slope

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()})"
