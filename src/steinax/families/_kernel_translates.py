from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import OtherPoints, Point, Points, PyTree, Values
from ..kernels import AbstractKernel, SquaredExponential
from ..kernels._matrix import pair_matrix
from ..operators import AbstractOperator, Langevin
from ._centres import AbstractCentres, AllDraws
from ._linear import AbstractLinearFamily


class KernelTranslates(AbstractLinearFamily):
    r"""Translates $g_\theta = \sum_j \theta_j k_0(\cdot, x_j)$ of a Stein kernel: control functionals.

    The basis functions are $u_j = \mathcal{L}_y k(\cdot, y)$ at $y = x_j$, the features
    $\psi_j = k_0(\cdot, x_j)$, and the family's own norm is that of the Stein kernel's Hilbert
    space (Oates, Girolami and Chopin, 2017). The operator decides the Stein kernel: of first order
    with `Langevin()`, of second with `ScalarLangevin()`.

    Args:
        kernel: the base kernel $k$.
        centres: the draws $x_j$: `AllDraws()` or `Landmarks(count)`.
        operator: $\mathcal{L}$.

    >>> from steinax import Landmarks
    >>> from steinax.kernels import Matern52
    >>> family = KernelTranslates(Matern52(), centres=Landmarks(100))
    """

    kernel: AbstractKernel = eqx.field(default_factory=SquaredExponential)
    centres: AbstractCentres = eqx.field(default_factory=AllDraws)
    operator: AbstractOperator = eqx.field(default_factory=Langevin)

    @property
    def centres_on_draws(self) -> bool:
        return True

    @property
    def is_whole_space(self) -> bool:
        return isinstance(self.centres, AllDraws)

    def setup(self, x: Points, score: Points) -> PyTree:
        if self.is_whole_space:
            return jnp.asarray(x), jnp.asarray(score)
        index = self.centres.choose(x.shape[0])
        return jnp.asarray(x)[index], jnp.asarray(score)[index]

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        def one(y, score):
            return self.operator.representer(self.kernel, y, score)(x)

        return jax.vmap(one)(*state)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        def one(y, score_y):
            return self.kernel.stein(self.operator, x, score, y, score_y)

        return jax.vmap(one)(*state)

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> jax.Array:
        return pair_matrix(partial(self.kernel.stein, self.operator), x, score, *state)

    def size(self, state: PyTree, dim: int) -> int:
        return state[0].shape[0]

    def gram(self, state: PyTree) -> jax.Array:
        return self.feature_matrix(state, *state)

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> jax.Array:
        if not self.is_whole_space:
            return super().cross_gram(state, x, score_x, y, score_y)
        return self.feature_matrix((y, score_y), x, score_x)

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> jax.Array:
        if not self.is_whole_space:
            return super().from_dual(state, x, score, dual)
        return jnp.asarray(dual)
