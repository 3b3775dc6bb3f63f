"""The unit sphere with its operator and polynomials."""

from math import comb

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, Chains, Point, Points, PyTree
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, check_potentials, layers
from ..operators import (
    AbstractOperator,
    Function,
    Langevin,
    PairFunction,
    ScalarLangevin,
    along_direction,
)
from ._common import (
    DRAWS_PER_CANDIDATE,
    HIGHEST,
    PAIRS,
    affordable,
    candidates,
    polynomial_and_kernel,
    unit_size,
)


class SphereLangevin(AbstractOperator):
    r"""The Langevin operator on the unit sphere $S^{d-1}$ in $\mathbb{R}^d$, for fields or potentials.

    With $P = I - x x^\top$ and $|x| = 1$, for any smooth extension of $u$ or $v$ to a neighbourhood,

    $$ \mathcal{L} u = \nabla_{\!S} \cdot P u + P u \cdot \nabla \log \pi
       = \operatorname{tr}(P\, \partial u) - (d - 1)\, x \cdot u + P u \cdot \nabla \log \pi , $$

    and $\mathcal{L} v$ is that of $u = \nabla v$: the Laplace-Beltrami operator and a drift,
    $\Delta_S v = \Delta v - x^\top \nabla^2 v\, x - (d - 1)\, x \cdot \nabla v$. There is no boundary, so
    the mean is zero for every smooth density with respect to the surface.

    Args:
        on_fields: whether it acts on vector fields rather than on potentials.

    >>> x = jnp.array([0.6, 0.8, 0.0])
    >>> operator = SphereLangevin(on_fields=False)
    >>> round(float(operator(lambda x: x[0], x, jnp.zeros(3))), 6)  # of the uniform: -2 x
    -1.2
    """

    on_fields: bool = eqx.field(static=True, default=True)

    @property
    def acts_on_fields(self) -> bool:
        return self.on_fields

    @property
    def domain(self) -> str:
        return "the sphere"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        def radial_derivative(z):
            return along_direction(u, z, x)[1]

        drift = _drift(x, score)
        if self.on_fields:
            return Langevin()(u, x, drift) - radial_derivative(x) @ x
        return ScalarLangevin()(u, x, drift) - along_direction(radial_derivative, x, x)[1]

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        if not self.on_fields:
            return lambda x: self(lambda z: kernel(x, z), y, score)
        drift = _drift(y, score)

        def field(x):
            value, gradient = jax.value_and_grad(kernel, argnums=1)(x, y)
            return _tangential(y, gradient) + value * drift

        return field


def _drift(x: Point, score: Point) -> jax.Array:
    """Compute the drift of the operator: the tangential score and a curvature term."""
    return _tangential(x, score) - (x.shape[-1] - 1) * x


def _tangential(x: Point, vector: Point) -> jax.Array:
    """Project a vector onto the tangent space at x."""
    return jnp.asarray(vector - (x @ vector) * x)


class SphericalPolynomial(AbstractLinearFamily):
    r"""Polynomials of total degree at most `degree` on the sphere, without linear dependence.

    As $|x|^2 = 1$, a monomial is a sum of monomials two degrees higher, and the features of `Polynomial` are
    linearly dependent. The monomials of the two highest degrees span the same functions; one of even degree
    is omitted, because those of even degree span a constant. There remain as many functions as there are
    spherical harmonics of degrees 1 to `degree`.

    Args:
        degree: the highest total degree, 1 or more.
        operator: `SphereLangevin(on_fields=False)`.

    >>> SphericalPolynomial(4).size(None, 3)  # (4 + 1)^2 - 1 harmonics
    24
    """

    degree: int = eqx.field(static=True, default=2)
    operator: AbstractOperator = eqx.field(default_factory=lambda: SphereLangevin(on_fields=False))

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"SphericalPolynomial({self.degree}): the degree must be 1 or more.")
        check_potentials(self)

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return sum(comb(dim + j - 1, j) for j in (self.degree, self.degree - 1)) - 1

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        values, scaled = x, [jnp.ones(1, x.dtype), x]
        for layer in layers(x.shape[0], self.degree):
            values = values[layer.parent] * x[layer.last]
            scaled.append(values * jnp.asarray(layer.norm, x.dtype))
        lower, upper = scaled[-2:]
        if self.degree % 2 == 0:
            return jnp.concatenate([lower, upper[1:]])
        return jnp.concatenate([lower[1:], upper])

    @property
    def is_parametric(self) -> bool:
        return True


UNIT = 1e-6  # tolerance on the length of a draw, which must be 1


class Sphere(AbstractSpace):
    r"""The unit sphere $S^{d-1}$ in $\mathbb{R}^d$: directions, axes, rotations as quaternions.

    Draws are unit vectors with all $d$ components. The density is with respect to the surface; scores are the
    gradient of any smooth extension of its logarithm to $\mathbb{R}^d$, of which the tangential part is used.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 3))
    >>> x /= np.linalg.norm(x, axis=-1, keepdims=True)  # uniform
    >>> sample = sx.Sample(x, 0 * x, space=sx.spaces.Sphere())
    >>> est = sx.estimate(lambda x: x[0] ** 2, sample)
    >>> bool(abs(est.value[0] - 1 / 3) < 1e-10)
    True
    """

    @property
    def domain(self) -> str:
        return "the sphere"

    @property
    def operator(self) -> SphereLangevin:
        return SphereLangevin()

    @property
    def potential_operator(self) -> SphereLangevin:
        return SphereLangevin(on_fields=False)

    def check(self, draws: Chains) -> None:
        if draws.shape[2] < 2:
            raise ValueError(
                "Sphere: the draws have one component: give unit vectors with all their components; for an "
                "angle give its cosine and sine."
            )
        off = np.abs(np.linalg.norm(draws, axis=2) - 1.0)
        if (off > UNIT).any():
            raise ValueError(
                f"{int((off > UNIT).sum())} draws are not of length 1, by up to {off.max():.2g}: divide "
                "each by its length, draws / np.linalg.norm(draws, axis=-1, keepdims=True)."
            )

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero, $\mathcal{L} x_i$ and $\mathcal{L} x_i x_j$, of root mean square 1.

        $\mathcal{L} x_i = t_i - (d - 1) x_i$ and $\mathcal{L} x_i x_j = 2 \cdot 1_{i = j} - 2 d\, x_i x_j
        + x_i t_j + x_j t_i$, with $t$ the tangential scores.
        """
        x, dim = draws, draws.shape[2]
        t = scores - np.sum(x * scores, axis=2, keepdims=True) * x
        series = [t - (dim - 1) * x]
        for shift in range(dim // 2 + 1) if dim <= PAIRS else range(3):
            y, s = np.roll(x, shift, axis=2), np.roll(t, shift, axis=2)
            series.append(2.0 * (shift == 0) - 2 * dim * x * y + x * s + y * t)
        return unit_size(np.concatenate(series, axis=2))

    def family(self, n: int, dim: int) -> AbstractLinearFamily:
        return polynomial_and_kernel(SphericalPolynomial, self._kernel, n, dim)

    def families(self, n: int, dim: int) -> tuple[AbstractLinearFamily, ...]:
        degrees = range(1, HIGHEST + 1)
        polynomials = affordable(SphericalPolynomial, degrees, n, dim, DRAWS_PER_CANDIDATE)
        return candidates(polynomials, self._kernel, dim)

    @property
    def _kernel(self) -> KernelTranslates:
        return KernelTranslates(operator=self.operator)

    def __repr__(self) -> str:
        return "Sphere()"
