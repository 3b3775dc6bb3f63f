from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._types import AnyArray, OtherPoints, Point, Points, PyTree, Values
from ..kernels import resolve
from ..operators import AbstractOperator, Langevin, ScalarLangevin, ScaledOperator
from ._base import AbstractLinearFamily, Products


class Subset(AbstractLinearFamily):
    r"""Another family, in some of the coordinates alone: $u(x) = u(x_S)$.

    Its functions depend on the coordinates $S$, and the operator needs the scores of these only,

    $$ g = \Delta_S u(x_S) + \nabla_S u(x_S)^\top s_S(x) , $$

    so there are fewer coefficients; the mean is still zero, whatever the other coordinates do. Draws
    are then standardised coordinate by coordinate, in the whole sum: a whitened coordinate would mix
    several of the draws' own.

    Args:
        family: the other family, linear in its parameters.
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
                f"Subset(operator={type(known).__name__}): it is for Langevin() and ScalarLangevin(), which "
                "ask of a function of some coordinates the scores of these alone: use one of them."
            )
        distinct = len(set(self.columns)) == len(self.columns)
        if not self.columns or not distinct or min(self.columns) < 0:
            raise ValueError(
                f"Subset(columns={self.columns}): give the numbers of one or more coordinates, each once, "
                "from 0 on."
            )

    @property
    def operator(self) -> AbstractOperator:
        return self.family.operator

    @property
    def keeps_coordinates(self) -> bool:
        return True

    def resolved(self, x: Points) -> "Subset":
        """The same with every heuristic replaced by the number that it gives on these coordinates."""
        return replace(self, family=resolve(self.family, self._own(x)))

    def setup(self, x: Points, score: Points) -> PyTree:
        return self.family.setup(self._own(x), self._own(score))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        basis = self.family.basis(state, self._own(x))
        if not self.operator.acts_on_fields:
            return basis
        whole = jnp.zeros((basis.shape[0], x.shape[0]), basis.dtype)
        return whole.at[:, np.array(self.columns)].set(basis)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        return self.family.features(state, self._own(x), self._own(score))

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        return self.family.feature_matrix(state, self._own(x), self._own(score))

    def gram(self, state: PyTree) -> AnyArray | None:
        return self.family.gram(state)

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        return self.family.cross_gram(state, *map(self._own, (x, score_x, y, score_y)))

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        return self.family.from_dual(state, self._own(x), self._own(score), dual)

    def products(self, state: PyTree, x: Points, score: Points) -> Products:
        return self.family.products(state, self._own(x), self._own(score))

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
    def is_matrix_free(self) -> bool:
        return self.family.is_matrix_free

    def size(self, state: PyTree, dim: int) -> int:
        return self.family.size(state, len(self.columns))

    def _own(self, values: AnyArray) -> AnyArray:
        """The coordinates of the subset, of a point or of many."""
        if max(self.columns) >= values.shape[-1]:
            raise ValueError(
                f"Subset(columns={self.columns}): the draws have {values.shape[-1]} coordinates, counted "
                "from 0; give columns among them."
            )
        return values[..., np.array(self.columns)]
