import abc

import equinox as eqx
import jax
from jaxtyping import Float

from .._types import AnyArray, Key, Point, Points, PyTree


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
