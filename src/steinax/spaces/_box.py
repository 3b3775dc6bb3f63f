import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf, precision
from .._types import AnyArray, Chains, Points
from ..auditing._identities import standardised
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, Polynomial
from ..operators import BoxLangevin, WallDistance
from ..operators._box import box_domain
from ._common import beside_others, unit_size
from ._families import (
    DRAWS_PER_CANDIDATE,
    HIGHEST,
    HIGHEST_IN_TAILS,
    affordable,
    candidates,
    polynomial_and_kernel,
)


class Box(AbstractSpace):
    r"""A box $\prod_i [l_i, h_i]$; bounds may be infinite: probabilities, scales, truncated parameters.

    Draws and scores are given as they are, on the box: no transform, and no Jacobian. The density need not
    vanish at the faces, and may be infinite there: the operators of the box (`BoxLangevin`) see to that.

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
                ": give the draws as they are on the box (not their logs or logits), or a larger box."
            )

    def coordinates(self, x: Points) -> tuple[AnyArray, AnyArray]:
        return x.mean(axis=0), x.std(axis=0)

    def unbounded(self, x: Chains, score: Chains) -> tuple[AnyArray, AnyArray] | None:
        r"""Logits between two bounds, logarithms of the distance from one; None where a draw lies on a face.

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
        bend = np.where(above, -low / width, 0.0) + np.where(below, high / width, 0.0)
        return z, score * slope + bend

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""$E[\varphi'(x_i)\, b_i + \varphi(x_i)\, (b_i' + b_i s_i)] = 0$, and pairs, in units of their size.

        $\varphi$ is $1$, $y$, $\tanh y$ and $\cos 2 y$ of the standardised dimension $y$.
        """
        y, scale = standardised(draws)
        b, slope = self._walls(draws)
        drift, b = slope + b * scores, b / scale
        wave = np.cos(2 * y) * drift - 2 * np.sin(2 * y) * b
        bounded = np.tanh(y)
        own = [drift, y * drift + b, bounded * drift + (1 - bounded**2) * b, wave]
        return unit_size(np.concatenate([*own, *beside_others(drift, bounded)], axis=2))

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
        """The degree up to which powers are tame."""
        return HIGHEST_IN_TAILS if self._has_tails else HIGHEST

    @property
    def _has_tails(self) -> bool:
        return not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all())

    def _walls(self, draws: Chains) -> tuple[AnyArray, AnyArray]:
        """The distance from the walls in every dimension, and its derivative in that dimension."""
        flat = draws.reshape(-1, draws.shape[2])
        distance = WallDistance(self.lower, self.upper)
        with precision(np.float64):
            found = jax.vmap(lambda x: jax.jvp(distance, (x,), (jnp.ones_like(x),)))(flat)
        b, slope = (np.asarray(one).reshape(draws.shape) for one in found)
        return b, slope

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()})"
