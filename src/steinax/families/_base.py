"""Base classes of families of control variates, linear families and sums."""

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._numerics import namespace
from .._show import Described
from .._types import AnyArray, Coefficients, Key, OtherPoints, Point, Points, PyTree, Values
from ..citing import references_of_sum
from ..operators import AbstractOperator


class AbstractFamily(Described):
    r"""A set of functions $u_\theta$ and the operator that turns them into $g_\theta = \mathcal{L} u_\theta$.

    A family holds hyper-parameters, never draws. Whatever depends on the draws is in the *state* that
    `setup` returns; the *parameters*, one set per integrand, are fitted.

    >>> from steinax import KernelTranslates, Polynomial
    >>> len((Polynomial(2) + KernelTranslates()).terms)
    2
    """

    @abc.abstractmethod
    def setup(self, x: Points, score: Points) -> PyTree:
        """Compute the state of the family from the draws that it will be fitted to."""

    @abc.abstractmethod
    def init(self, state: PyTree, x: Points, k: int, key: Key) -> PyTree:
        """Return initial parameters for `k` integrands, with which the control variates are zero."""

    @abc.abstractmethod
    def evaluate(self, state: PyTree, params: PyTree, x: Point, score: Point) -> jax.Array:
        r"""Evaluate the control variates $g_\theta(x)$ of all integrands at one point: shape (k,)."""

    @abc.abstractmethod
    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        """Return the parameters of the control variates times `factor`, integrand by integrand."""

    @property
    def terms(self) -> tuple["AbstractFamily", ...]:
        """The families that this one is the sum of."""
        return (self,)

    @property
    def keeps_coordinates(self) -> bool:
        """Whether the family refers to single coordinates, so that draws must not be whitened."""
        return any(term.keeps_coordinates for term in self.terms if term is not self)

    def __add__(self, other: "AbstractFamily") -> "AbstractFamily":
        return add(self, other) if isinstance(other, AbstractFamily) else NotImplemented


NUMBERS = 2**23  # entries of the feature matrix in memory at once, when only products are needed


class Products(NamedTuple):
    """Products with the feature matrix of fixed points, and with its transpose."""

    apply: Callable[[jax.Array], jax.Array]  # (p, k) to (n, k)
    adjoint: Callable[[jax.Array], jax.Array]  # (n, k) to (p, k)
    both: Callable[[jax.Array], jax.Array]  # `apply` of `adjoint`, (n, k) to (n, k)
    # the q largest features, (n, q), and the mean over points of the sum of squares of the others
    leading: Callable[[], tuple[jax.Array, jax.Array]]


if TYPE_CHECKING:

    class _HasOperator:  # not a module: each family has this field at its place among the arguments
        operator: AbstractOperator
else:
    _HasOperator = object


class AbstractLinearFamily(AbstractFamily, _HasOperator):
    r"""A family $u_\theta = \sum_j \theta_j u_j$, linear in its coefficients.

    A new family needs only `setup` and `basis`, written for one point. The features
    $\psi_j = \mathcal{L} u_j$ follow by automatic differentiation. The methods after `basis` have
    defaults that closed forms may override; a test compares each override with its default.

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

    @abc.abstractmethod
    def basis(self, state: PyTree, x: Point) -> jax.Array:
        """Evaluate the basis at one point: potentials (p,) or fields (p, dim), as the operator needs."""

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        r"""Compute the features $\psi_j(x) = \mathcal{L} u_j(x)$ at one point: shape (p,)."""
        return self.operator(lambda z: self.basis(state, z), x, score)

    def gram(self, state: PyTree) -> AnyArray | None:
        r"""Compute the matrix $\Omega$ of the norm $\theta^\top \Omega \theta$; None for the identity."""
        return None

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        r"""Compute the kernel $\psi(x)^\top \Omega^{-1} \psi(y)$ whose span is the family, (n, m)."""
        left = self.feature_matrix(state, x, score_x)
        return left @ self._divide(state, self.feature_matrix(state, y, score_y).T)

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        r"""Compute the coefficients $\Omega^{-1} \sum_i \psi(x_i) \alpha_i$ from dual coefficients $\alpha$.

        The points must be those that the family was set up on.
        """
        return self._divide(state, self.adjoint(state, x, score, dual))

    def apply(self, state: PyTree, coef: Coefficients, x: Points, score: Points) -> AnyArray:
        r"""Compute the values $g_\theta(x_i)$ at many points: (n, k)."""
        if namespace(x, coef) is not np:
            return self.products(state, x, score).apply(jnp.asarray(coef))
        rows = max(NUMBERS // max(len(coef), 1), 1)
        blocks = [slice(start, start + rows) for start in range(0, len(x), rows)]
        return np.concatenate(
            [self.feature_matrix(state, x[block], score[block]) @ coef for block in blocks]
        )

    def adjoint(self, state: PyTree, x: Points, score: Points, values: Values) -> AnyArray:
        r"""Compute $\sum_i \psi(x_i) v_i$, the transpose of `apply`: (p, k)."""
        return self.products(state, x, score).adjoint(jnp.asarray(values))

    def products(self, state: PyTree, x: Points, score: Points) -> Products:
        """Return `apply` and `adjoint` as functions, for repeated use on the same points."""
        features = self.feature_matrix(state, x, score)
        return Products(
            lambda coef: features @ coef,
            lambda values: features.T @ values,
            lambda values: features @ (features.T @ values),
            lambda: (features[:, :0], jnp.mean(jnp.sum(features**2, axis=1))),
        )

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        """Compute the features of many points, (n, p): a NumPy array if the points are one."""
        if namespace(x) is np:
            return np.asarray(_map_features(self, state, x, score))
        return jax.vmap(self.features, in_axes=(None, 0, 0))(state, x, score)

    @property
    def is_parametric(self) -> bool:
        """Whether the family is a regression on a few well-scaled functions, exact on their span.

        Such a family is fitted without a penalty when there are enough draws.
        """
        return False

    @property
    def centres_on_draws(self) -> bool:
        """Whether the basis functions are centred on the draws that the family was set up on."""
        return False

    @property
    def is_whole_space(self) -> bool:
        """Whether a fit in the family's norm equals the fit in its kernel's whole space."""
        return False

    @property
    def has_one_unit(self) -> bool:
        """Whether all columns of the draws are in one unit, as the sites of a field are."""
        return False

    @property
    def is_matrix_free(self) -> bool:
        """Whether `apply` and `adjoint` do without the (n, p) matrix of features."""
        return False

    def size(self, state: PyTree, dim: int) -> int:
        """Return the number of basis functions."""
        point = jax.ShapeDtypeStruct((dim,), jnp.result_type(float))
        return jax.eval_shape(self.basis, state, point).shape[0]

    def init(self, state: PyTree, x: Points, k: int, key: Key) -> jax.Array:
        return jnp.zeros((self.size(state, x.shape[1]), k), jnp.asarray(x).dtype)

    def evaluate(self, state: PyTree, params: Coefficients, x: Point, score: Point) -> jax.Array:
        return self.features(state, x, score) @ params

    def rescale(self, params: Coefficients, factor: Float[AnyArray, " k"]) -> jax.Array:
        return jnp.asarray(params * factor)

    def _divide(self, state: PyTree, columns: AnyArray) -> AnyArray:
        r"""Multiply columns by $\Omega^{-1}$."""
        gram = self.gram(state)
        return columns if gram is None else namespace(gram, columns).linalg.solve(gram, columns)


@eqx.filter_jit
def _map_features(
    family: AbstractLinearFamily, state: PyTree, x: Points, score: Points
) -> jax.Array:
    """Map the features of one point over many points, compiled."""
    return jax.vmap(family.features, in_axes=(None, 0, 0))(state, x, score)


def check_potentials(family: AbstractLinearFamily) -> None:
    """Raise an error if a family of potentials has an operator on vector fields."""
    if family.operator.acts_on_fields:
        raise ValueError(
            f"{type(family).__name__} is a family of potentials, and {type(family.operator).__name__} "
            "acts on vector fields: use operator=ScalarLangevin()."
        )


class AbstractCoordinateFields(AbstractLinearFamily):
    """A family of vector fields that refer to single coordinates, with features of many points at once.

    Subclasses give `placed`, `setup`, `basis` and `feature_matrix`.
    """

    def __check_init__(self) -> None:
        if not self.operator.acts_on_fields:
            raise ValueError(
                f"{type(self).__name__} is a family of vector fields, and {type(self.operator).__name__} "
                "acts on potentials: use operator=Langevin()."
            )

    @abc.abstractmethod
    def placed(
        self, names: Sequence[str], shift: AnyArray, scale: AnyArray
    ) -> "AbstractCoordinateFields":
        """Find columns by their names, and account for the coordinates that the family is set up in.

        Args:
            names: of the columns.
            shift: the origin of each coordinate, (dim,).
            scale: its unit, (dim,).
        """

    @property
    def keeps_coordinates(self) -> bool:
        return True

    @property
    def centres_on_draws(self) -> bool:
        return True

    @property
    def is_parametric(self) -> bool:
        return True

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        return self.feature_matrix(state, jnp.asarray(x)[None], jnp.asarray(score)[None])[0]


def add(left: AbstractFamily, right: AbstractFamily) -> AbstractFamily:
    """Add two families: the sum is flat, and linear when all of its terms are."""
    terms = left.terms + right.terms
    linear = [term for term in terms if isinstance(term, AbstractLinearFamily)]
    return LinearSum(tuple(linear)) if len(linear) == len(terms) else Sum(tuple(terms))


class Sum(AbstractFamily):
    """A sum of families, each with its own operator, as returned by `a + b`.

    >>> from steinax import Network, Polynomial
    >>> [type(term).__name__ for term in (Polynomial(2) + Network()).terms]
    ['Polynomial', 'Network']
    """

    parts: tuple[AbstractFamily, ...]

    @property
    def references(self) -> tuple[str, ...]:
        return references_of_sum(*self.parts)

    @property
    def terms(self) -> tuple[AbstractFamily, ...]:
        return self.parts

    def setup(self, x: Points, score: Points) -> PyTree:
        return tuple(term.setup(x, score) for term in self.parts)

    def init(self, state: PyTree, x: Points, k: int, key: Key) -> PyTree:
        keys = jax.random.split(key, len(self.parts))
        zipped = zip(self.parts, state, keys, strict=True)
        return tuple(term.init(term_state, x, k, term_key) for term, term_state, term_key in zipped)

    def evaluate(self, state: PyTree, params: PyTree, x: Point, score: Point) -> jax.Array:
        zipped = zip(self.parts, state, params, strict=True)
        return sum(term.evaluate(term_state, theta, x, score) for term, term_state, theta in zipped)  # type: ignore

    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        return tuple(
            term.rescale(theta, factor) for term, theta in zip(self.parts, params, strict=True)
        )


class LinearSum(AbstractLinearFamily):
    """A sum of linear families: its feature matrix concatenates those of the terms.

    Solvers treat the terms one by one, because each may have its own penalty. Each term keeps its
    own operator; a basis of the sum would mix potentials and fields, so there is none.

    >>> from steinax import KernelTranslates, Polynomial
    >>> [type(term).__name__ for term in (Polynomial(2) + KernelTranslates()).terms]
    ['Polynomial', 'KernelTranslates']
    """

    parts: tuple[AbstractLinearFamily, ...]
    operator: None = eqx.field(static=True, default=None)  # type: ignore[assignment]

    @property
    def references(self) -> tuple[str, ...]:
        return references_of_sum(*self.parts)

    @property
    def terms(self) -> tuple[AbstractLinearFamily, ...]:
        return self.parts

    def setup(self, x: Points, score: Points) -> PyTree:
        return tuple(term.setup(x, score) for term in self.parts)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        raise NotImplementedError(
            "a sum has no basis of its own: use the basis of each of its terms."
        )

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        zipped = zip(self.parts, state, strict=True)
        return jnp.concatenate([term.features(term_state, x, score) for term, term_state in zipped])

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        zipped = zip(self.parts, state, strict=True)
        grams = [term.cross_gram(term_state, x, score_x, y, score_y) for term, term_state in zipped]
        return sum(grams[1:], grams[0])

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        zipped = zip(self.parts, state, strict=True)
        blocks = [term.from_dual(term_state, x, score, dual) for term, term_state in zipped]
        return namespace(*blocks).concat(blocks, axis=0)

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        zipped = zip(self.parts, state, strict=True)
        blocks = [term.feature_matrix(term_state, x, score) for term, term_state in zipped]
        return namespace(*blocks).concat(blocks, axis=1)

    def size(self, state: PyTree, dim: int) -> int:
        return sum(
            term.size(term_state, dim) for term, term_state in zip(self.parts, state, strict=True)
        )


def log_hyperparameters(family: AbstractFamily) -> PyTree:
    """The logarithm of every (positive) hyper-parameter of a family, and None for all other leaves.

    An operator's factor is not a hyper-parameter: it may be negative, and the coefficients absorb it.
    """

    def is_operator(node: PyTree) -> bool:
        return isinstance(node, AbstractOperator)

    def spec(node: PyTree) -> PyTree:
        keep = not is_operator(node) and eqx.is_inexact_array(node)
        return jax.tree.map(lambda _: keep, node) if is_operator(node) else keep

    chosen = jax.tree.map(spec, family, is_leaf=is_operator)
    hyper = eqx.filter(family, chosen)
    return jax.tree.map(lambda leaf: jnp.log(jnp.asarray(leaf)), hyper)


def with_hyperparameters(family: AbstractFamily, log_hyper: PyTree) -> AbstractFamily:
    """Replace the hyper-parameters of a family; return it unchanged if none are given."""
    if log_hyper is None:
        return family
    return eqx.combine(jax.tree.map(jnp.exp, log_hyper), family)
