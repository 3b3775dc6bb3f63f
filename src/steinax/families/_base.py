"""What a family of control variates is, and linear ones: features times coefficients."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._linalg import namespace
from .._types import AnyArray, Coefficients, Key, OtherPoints, Point, Points, PyTree, Values
from ..operators import AbstractOperator


class AbstractFamily(eqx.Module):
    r"""A set of functions $u_\theta$ and the operator that turns them into $g_\theta = \mathcal{L} u_\theta$.

    A family is a recipe: it holds hyper-parameters, never draws. What depends on the draws is the
    *state* that `setup` makes; what is fitted are the *parameters*, one set per integrand.

    >>> from steinax import KernelTranslates, Polynomial
    >>> len((Polynomial(2) + KernelTranslates()).terms)
    2
    """

    @abc.abstractmethod
    def setup(self, x: Points, score: Points) -> PyTree:
        """What the family needs to keep of the draws that it will be fitted to."""

    @abc.abstractmethod
    def init(self, state: PyTree, x: Points, k: int, key: Key) -> PyTree:
        """Parameters to start from, for `k` integrands; with them the family is the zero function."""

    @abc.abstractmethod
    def evaluate(self, state: PyTree, params: PyTree, x: Point, score: Point) -> jax.Array:
        r"""The control variates $g_\theta(x)$ of all integrands at one point: shape (k,)."""

    @abc.abstractmethod
    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        """The parameters of `factor` times the control variates, integrand by integrand."""

    @property
    def terms(self) -> tuple["AbstractFamily", ...]:
        """The families that this one is the sum of."""
        return (self,)

    @property
    def keeps_coordinates(self) -> bool:
        """Whether draws are standardised coordinate by coordinate, because these are spoken of."""
        return any(term.keeps_coordinates for term in self.terms if term is not self)

    def __add__(self, other: "AbstractFamily") -> "AbstractFamily":
        from ._sum import add  # the sum is itself a family, so it stands above this file

        return add(self, other)


NUMBERS = (
    2**23
)  # of features that are in memory at once when only their products are asked for: 64 MB


class Products(NamedTuple):
    """Products with the features of some points: with their matrix, and with its transpose."""

    apply: Callable[[jax.Array], jax.Array]  # (p, k) to (n, k)
    adjoint: Callable[[jax.Array], jax.Array]  # (n, k) to (p, k)
    both: Callable[[jax.Array], jax.Array]  # `apply` of `adjoint`, (n, k) to (n, k)
    # the first few features, the largest, (n, q), and the mean of the sum of squares of the others
    leading: Callable[[], tuple[jax.Array, jax.Array]]


class AbstractLinearFamily(AbstractFamily):
    r"""A family $u_\theta = \sum_j \theta_j u_j$, linear in its coefficients.

    A new family is one file with `setup` and `basis`, written for one point. The features
    $\psi_j = \mathcal{L} u_j$ follow by automatic differentiation. What follows `basis` below is
    there to be overridden by closed forms, each held to its default by a test.

    >>> import equinox as eqx
    >>> from steinax import ScalarLangevin
    >>> class Cosines(AbstractLinearFamily):
    ...     operator: AbstractOperator = eqx.field(default_factory=ScalarLangevin)
    ...
    ...     def setup(self, x, score):
    ...         return None
    ...
    ...     def basis(self, state, x):
    ...         return jnp.cos(x)
    >>> Cosines().feature_matrix(None, jnp.zeros((5, 2)), jnp.zeros((5, 2))).shape
    (5, 2)
    """

    if TYPE_CHECKING:  # a field, declared by each family where it belongs among its arguments
        operator = cast(AbstractOperator, None)

    @abc.abstractmethod
    def basis(self, state: PyTree, x: Point) -> jax.Array:
        """The basis at one point: potentials (p,) or fields (p, dim), as the operator asks."""

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        r"""The features $\psi_j(x) = \mathcal{L} u_j(x)$ at one point: shape (p,)."""
        return self.operator(lambda z: self.basis(state, z), x, score)

    def gram(self, state: PyTree) -> AnyArray | None:
        r"""The matrix $\Omega$ of the family's own norm $\theta^\top \Omega \theta$; None if it is 1."""
        return None

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        r"""The kernel $\psi(x)^\top \Omega^{-1} \psi(y)$ that the family is the span of, (n, m)."""
        left = self.feature_matrix(state, x, score_x)
        return left @ self._divide(state, self.feature_matrix(state, y, score_y).T)

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        r"""The coefficients $\Omega^{-1} \sum_i \psi(x_i) \alpha_i$ of a combination of translates.

        The points are those that the family was set up on.
        """
        return self._divide(state, self.adjoint(state, x, score, dual))

    def apply(self, state: PyTree, coef: Coefficients, x: Points, score: Points) -> AnyArray:
        r"""The values $g_\theta(x_i)$ on many points: (n, k)."""
        if namespace(x, coef) is not np:
            return self.products(state, x, score).apply(jnp.asarray(coef))
        rows = max(NUMBERS // max(len(coef), 1), 1)
        parts = [slice(start, start + rows) for start in range(0, len(x), rows)]
        return np.concatenate(
            [self.feature_matrix(state, x[part], score[part]) @ coef for part in parts]
        )

    def adjoint(self, state: PyTree, x: Points, score: Points, values: Values) -> AnyArray:
        r"""The transpose of `apply`, $\sum_i \psi(x_i) v_i$: (p, k)."""
        return self.products(state, x, score).adjoint(jnp.asarray(values))

    def products(self, state: PyTree, x: Points, score: Points) -> Products:
        """`apply` and `adjoint` for the same points again and again."""
        features = self.feature_matrix(state, x, score)
        return Products(
            lambda coef: features @ coef,
            lambda values: features.T @ values,
            lambda values: features @ (features.T @ values),
            lambda: (features[:, :0], jnp.mean(jnp.sum(features**2, axis=1))),
        )

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        """The features of many points, (n, p): NumPy's arrays if these are."""
        if namespace(x) is np:
            return np.asarray(_mapped(self, state, x, score))
        return jax.vmap(self.features, in_axes=(None, 0, 0))(state, x, score)

    @property
    def is_parametric(self) -> bool:
        """Whether it is a regression on a few well-scaled functions, to be exact on their span.

        Such a family is fitted without a penalty when there are draws enough.
        """
        return False

    @property
    def centres_on_draws(self) -> bool:
        """Whether functions are centred on the draws that the family was set up on."""
        return False

    @property
    def is_whole_space(self) -> bool:
        """Whether the span is, for fitting in its own norm, as good as its kernel's whole space."""
        return False

    @property
    def is_matrix_free(self) -> bool:
        """Whether `apply` and `adjoint` do without the (n, p) matrix of features."""
        return False

    def size(self, state: PyTree, dim: int) -> int:
        """The number of basis functions."""
        point = jax.ShapeDtypeStruct((dim,), jnp.result_type(float))
        return jax.eval_shape(self.basis, state, point).shape[0]

    def init(self, state: PyTree, x: Points, k: int, key: Key) -> jax.Array:
        return jnp.zeros((self.size(state, x.shape[1]), k), jnp.asarray(x).dtype)

    def evaluate(self, state: PyTree, params: Coefficients, x: Point, score: Point) -> jax.Array:
        return self.features(state, x, score) @ params

    def rescale(self, params: Coefficients, factor: Float[AnyArray, " k"]) -> jax.Array:
        return jnp.asarray(params * factor)

    def _divide(self, state: PyTree, columns: AnyArray) -> AnyArray:
        gram = self.gram(state)
        return columns if gram is None else namespace(gram, columns).linalg.solve(gram, columns)


@eqx.filter_jit
def _mapped(family: AbstractLinearFamily, state: PyTree, x: Points, score: Points) -> jax.Array:
    return jax.vmap(family.features, in_axes=(None, 0, 0))(state, x, score)


def check_potentials(family: AbstractLinearFamily) -> None:
    """Refuse an operator on vector fields for a family of potentials."""
    if family.operator.acts_on_fields:
        raise ValueError(
            f"{type(family).__name__} is a family of potentials, and {type(family.operator).__name__} "
            "acts on vector fields: use operator=ScalarLangevin()."
        )
