import numpy as np

from .._types import AnyArray, Chains
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates
from ..operators import SphereLangevin
from ._common import PAIRS, unit_size
from ._families import (
    DRAWS_PER_CANDIDATE,
    HIGHEST,
    affordable,
    candidates,
    polynomial_and_kernel,
)
from ._spherical import SphericalPolynomial

UNIT = 1e-6  # by how much the length of a draw may differ from 1


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
                "Sphere: draws of one component: give unit vectors with all their components; for an angle "
                "give its cosine and sine."
            )
        off = np.abs(np.linalg.norm(draws, axis=2) - 1.0)
        if (off > UNIT).any():
            raise ValueError(
                f"{int((off > UNIT).sum())} draws are not of length 1, by up to {off.max():.2g}: divide "
                "each by its length, draws / np.linalg.norm(draws, axis=-1, keepdims=True)."
            )

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""$E[\mathcal{L} v] = 0$ for $v = x_i$ and $v = x_i x_j$, in units of their size.

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
