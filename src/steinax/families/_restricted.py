"""Families restricted to some of their features, or to some of the coordinates."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, OtherPoints, Point, Points, PyTree, Values
from ..kernels import resolve
from ..operators import AbstractOperator, Langevin, ScalarLangevin, ScaledOperator
from ._base import AbstractLinearFamily, Products


class Masked(AbstractLinearFamily):
    """A family with some of its features set to zero.

    They are not removed, so that one compilation serves every mask. Exact least squares gives them the
    coefficient zero.

    Args:
        family: the family to restrict.
        mask: 1 for features that are kept and 0 for the others, (p,).

    >>> import jax.numpy as jnp
    >>> from steinax import Polynomial
    >>> masked = Masked(Polynomial(1), jnp.array([1.0, 0.0]))
    >>> masked.features(None, jnp.ones(2), -jnp.ones(2)).tolist()
    [-1.0, -0.0]
    """

    family: AbstractLinearFamily
    mask: Float[AnyArray, " p"]

    @property
    def operator(self) -> AbstractOperator:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.family.operator

    def setup(self, x: Points, score: Points) -> PyTree:
        return self.family.setup(x, score)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        basis = self.family.basis(state, x)
        return basis * jnp.reshape(self.mask, (-1,) + (1,) * (basis.ndim - 1))

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        return self.family.features(state, x, score) * self.mask

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        return self.family.feature_matrix(state, x, score) * self.mask

    @property
    def is_parametric(self) -> bool:
        return self.family.is_parametric


class Subset(AbstractLinearFamily):
    r"""A family of functions of some of the coordinates alone: $u(x) = u(x_S)$.

    Its functions depend on the coordinates $S$, and the operator needs the scores of these only,

    $$ g = \Delta_S u(x_S) + \nabla_S u(x_S)^\top s_S(x) , $$

    so there are fewer coefficients; the mean is zero, whatever the other coordinates are. In every sum
    with a `Subset`, draws are standardised coordinate by coordinate, because whitening would mix the
    coordinates.

    Args:
        family: the family to restrict, linear in its parameters.
        columns: the coordinates $S$, counted from 0.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 3)) * [1.0, 2.0, 3.0]
    >>> sample = sx.Sample(x, -x / np.array([1.0, 4.0, 9.0]))
    >>> g = sx.fit("x[0]", sample, Subset(sx.Polynomial(1), (0,)))
    >>> g.params.shape, bool(abs(g.intercept[0]) < 1e-12)
    ((1, 1), True)
    """

    family: AbstractLinearFamily
    columns: tuple[int, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self) -> None:
        if not isinstance(self.family, AbstractLinearFamily) or len(self.family.terms) > 1:
            raise TypeError(
                "Subset takes one family that is linear in its parameters: for a sum, add subsets, as in "
                "Subset(Polynomial(2), (0, 1)) + Subset(KernelTranslates(), (0,))."
            )
        known = (
            self.operator.operator if isinstance(self.operator, ScaledOperator) else self.operator
        )
        if not isinstance(known, (Langevin, ScalarLangevin)):
            raise TypeError(
                f"Subset(operator={type(known).__name__}): use Langevin() or ScalarLangevin(), which need "
                "only the scores of the coordinates that a function depends on."
            )
        distinct = len(set(self.columns)) == len(self.columns)
        if not self.columns or not distinct or min(self.columns) < 0:
            raise ValueError(
                f"Subset(columns={self.columns}): give the numbers of one or more coordinates, each once, "
                "from 0 on."
            )

    @property
    def operator(self) -> AbstractOperator:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.family.operator

    @property
    def keeps_coordinates(self) -> bool:
        return True

    def resolved(self, x: Points) -> "Subset":
        """Replace every heuristic by the number that it gives on the coordinates of the subset."""
        return replace(self, family=resolve(self.family, self._select(x)))

    def setup(self, x: Points, score: Points) -> PyTree:
        return self.family.setup(self._select(x), self._select(score))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        basis = self.family.basis(state, self._select(x))
        if not self.operator.acts_on_fields:
            return basis
        field = jnp.zeros((basis.shape[0], x.shape[0]), basis.dtype)
        return field.at[:, np.array(self.columns)].set(basis)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        return self.family.features(state, self._select(x), self._select(score))

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        return self.family.feature_matrix(state, self._select(x), self._select(score))

    def gram(self, state: PyTree) -> AnyArray | None:
        return self.family.gram(state)

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        return self.family.cross_gram(state, *map(self._select, (x, score_x, y, score_y)))

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        return self.family.from_dual(state, self._select(x), self._select(score), dual)

    def products(self, state: PyTree, x: Points, score: Points) -> Products:
        return self.family.products(state, self._select(x), self._select(score))

    @property
    def is_parametric(self) -> bool:
        return self.family.is_parametric

    @property
    def centres_on_draws(self) -> bool:
        return self.family.centres_on_draws

    @property
    def is_whole_space(self) -> bool:
        return self.family.is_whole_space

    @property
    def has_one_unit(self) -> bool:
        return self.family.has_one_unit

    @property
    def is_matrix_free(self) -> bool:
        return self.family.is_matrix_free

    def size(self, state: PyTree, dim: int) -> int:
        return self.family.size(state, len(self.columns))

    def _select(self, values: AnyArray) -> AnyArray:
        """Select the coordinates of the subset, of one point or of many."""
        if max(self.columns) >= values.shape[-1]:
            raise ValueError(
                f"Subset(columns={self.columns}): the draws have {values.shape[-1]} coordinates, counted "
                "from 0; give columns among them."
            )
        return values[..., np.array(self.columns)]
