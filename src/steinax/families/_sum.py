import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._linalg import namespace
from .._types import AnyArray, Key, OtherPoints, Point, Points, PyTree, Values
from ..citing import references_of_sum
from ._base import AbstractFamily, AbstractLinearFamily


def add(left: AbstractFamily, right: AbstractFamily) -> AbstractFamily:
    """The sum of two families, flat however it is bracketed, linear when all terms are."""
    terms = left.terms + right.terms
    linear = [term for term in terms if isinstance(term, AbstractLinearFamily)]
    return LinearSum(tuple(linear)) if len(linear) == len(terms) else Sum(tuple(terms))


class Sum(AbstractFamily):
    """A sum of families, each with its own operator; made by `a + b`.

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
        return tuple(part.setup(x, score) for part in self.parts)

    def init(self, state: PyTree, x: Points, k: int, key: Key) -> PyTree:
        keys = jax.random.split(key, len(self.parts))
        each = zip(self.parts, state, keys, strict=True)
        return tuple(part.init(own, x, k, one) for part, own, one in each)

    def evaluate(self, state: PyTree, params: PyTree, x: Point, score: Point) -> jax.Array:
        each = zip(self.parts, state, params, strict=True)
        return sum(part.evaluate(own, theta, x, score) for part, own, theta in each)  # type: ignore

    def rescale(self, params: PyTree, factor: Float[AnyArray, " k"]) -> PyTree:
        return tuple(
            part.rescale(own, factor) for part, own in zip(self.parts, params, strict=True)
        )


class LinearSum(AbstractLinearFamily):
    """A sum of linear families, linear itself: its features are theirs, side by side.

    Solvers go through its terms, because each may have a penalty of its own. Each term keeps its
    own operator; the sum's basis would mix potentials and fields, so it has none.

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
        return tuple(part.setup(x, score) for part in self.parts)

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        raise NotImplementedError("a sum has no basis of one kind: ask each of its terms.")

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        each = zip(self.parts, state, strict=True)
        return jnp.concatenate([part.features(own, x, score) for part, own in each])

    def cross_gram(
        self, state: PyTree, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints
    ) -> AnyArray:
        each = zip(self.parts, state, strict=True)
        grams = [part.cross_gram(own, x, score_x, y, score_y) for part, own in each]
        return sum(grams[1:], grams[0])

    def from_dual(self, state: PyTree, x: Points, score: Points, dual: Values) -> AnyArray:
        each = zip(self.parts, state, strict=True)
        parts = [part.from_dual(own, x, score, dual) for part, own in each]
        return namespace(*parts).concat(parts, axis=0)

    def feature_matrix(self, state: PyTree, x: Points, score: Points) -> AnyArray:
        each = zip(self.parts, state, strict=True)
        parts = [part.feature_matrix(own, x, score) for part, own in each]
        return namespace(*parts).concat(parts, axis=1)

    def size(self, state: PyTree, dim: int) -> int:
        return sum(part.size(own, dim) for part, own in zip(self.parts, state, strict=True))
