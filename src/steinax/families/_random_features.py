"""Random Fourier features: a kernel by cosines of random frequencies."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import Point, Points, PyTree
from ..kernels import Hyperparameter, MedianHeuristic, hyperparameter
from ..operators import AbstractOperator, ScalarLangevin
from ._base import AbstractLinearFamily, check_potentials


class RandomFeatures(AbstractLinearFamily):
    r"""Random Fourier features $u_j(x) = \sqrt{2/p} \cos(\omega_j \cdot x + b_j)$ as potentials.

    With $\omega_j \sim \mathcal{N}(0, \ell^{-2} I)$ and $b_j$ uniform they approximate the squared
    exponential kernel (Rahimi and Recht, 2007) at a cost that does not grow with the draws.

    Args:
        count: $p$, the number of features.
        length_scale: $\ell$, a number or a heuristic.
        seed: the seed of the frequencies and phases.
        operator: `ScalarLangevin()`, or another that acts on potentials.

    >>> family = RandomFeatures(100)
    >>> family.size(None, dim=3)
    100
    """

    references: ClassVar[tuple[str, ...]] = ("rahimi2007random",)
    count: int = eqx.field(static=True, default=200)
    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=MedianHeuristic
    )
    seed: int = eqx.field(static=True, default=0)
    operator: AbstractOperator = eqx.field(default_factory=ScalarLangevin)

    def __check_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"RandomFeatures({self.count}): ask for at least one feature.")
        check_potentials(self)

    def setup(self, x: Points, score: Points) -> PyTree:
        frequency_key, phase_key = jax.random.split(jax.random.key(self.seed))
        # drawn in single precision, so that float32 and float64 draws have the same features
        frequency = jax.random.normal(frequency_key, (self.count, x.shape[1]), jnp.float32)
        phase = jax.random.uniform(phase_key, (self.count,), jnp.float32, maxval=2 * jnp.pi)
        dtype = jnp.asarray(x).dtype
        return frequency.astype(dtype) / self.length_scale, phase.astype(dtype)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        omega, phase = state
        return jnp.sqrt(2 / self.count) * jnp.cos(omega @ x + phase)

    def size(self, state: PyTree, dim: int) -> int:
        return self.count
