"""Binary vectors: the space {0, 1}^d, its operators, its kernel and its polynomials."""

from collections.abc import Callable
from functools import cache
from itertools import combinations
from math import comb
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Chains, Point, Points, PyTree
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates
from ..kernels import AbstractHeuristic, AbstractKernel, Hyperparameter, hyperparameter
from ..operators import AbstractOperator, Function, PairFunction
from ._common import (
    KERNEL_STATES,
    affordable,
    candidates,
    of_highest_degree,
    pair_products,
    ratio_scores,
    unit_size,
)


class Glauber(AbstractOperator):
    r"""The operator of Glauber dynamics on vector fields over $\{0, 1\}^d$.

    $$ \mathcal{L} u(x) = \sum_i q_i(x) \bigl( u_i(x^i) - u_i(x) \bigr), \qquad
       q_i = \frac{\rho_i}{1 + \rho_i}, \quad \rho_i(x) = \frac{\pi(x^i)}{\pi(x)} $$

    where $x^i$ is $x$ with its coordinate $i$ flipped. Each term is $E[u_i \mid x_{-i}] - u_i$, the expected
    change in a step of a Gibbs sampler (Bresler and Nagaraj, 2019; Reinert and Ross, 2019). The score is
    $s_i = 1 - \rho_i(x)$. Unlike the difference $u_i(x) - \rho_i u_i(x^i)$ of Yang, Liu, Rao and Neville
    (2018) it is bounded wherever $u$ is, even if $x$ is very unlikely.

    >>> import jax.numpy as jnp
    >>> x, p = jnp.array([1.0]), 0.5
    >>> float(Glauber()(lambda x: x, x, 1 - jnp.array([(1 - p) / p])))  # p - x
    -0.5
    """

    references: ClassVar[tuple[str, ...]] = ("bresler2019stein", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return True

    @property
    def domain(self) -> str:
        return "binary"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        flipped = jnp.diagonal(
            jax.vmap(u)(flips(x)), axis1=0, axis2=-1
        )  # u_i at x with x_i flipped
        return (flipped - u(x)) @ flip_rate(score)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            flipped = jax.vmap(lambda z: kernel(x, z))(flips(y))
            return flip_rate(score) * (flipped - kernel(x, y))

        return field


class ScalarGlauber(AbstractOperator):
    r"""The generator of Glauber dynamics, on potentials over $\{0, 1\}^d$.

    $$ \mathcal{L} v(x) = \sum_i q_i(x) \bigl( v(x^i) - v(x) \bigr), \qquad q_i = \frac{\rho_i}{1 + \rho_i} $$

    It is `Glauber` with one function for all coordinates: fewer basis functions, which are less flexible.

    >>> import jax.numpy as jnp
    >>> x, p = jnp.array([1.0]), 0.5
    >>> float(ScalarGlauber()(lambda x: x[0], x, 1 - jnp.array([(1 - p) / p])))  # p - x
    -0.5
    """

    references: ClassVar[tuple[str, ...]] = ("bresler2019stein", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return False

    @property
    def domain(self) -> str:
        return "binary"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        return jnp.tensordot(flip_rate(score), jax.vmap(u)(flips(x)) - u(x), axes=1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)


def flips(x: Point) -> jax.Array:
    """Return the points with each coordinate flipped in turn: (dim, dim)."""
    return jnp.abs(x - jnp.eye(x.shape[-1], dtype=x.dtype))


def flip_rate(score: Point) -> jax.Array:
    r"""Compute the probability $q_i = \rho_i / (1 + \rho_i)$ of a Gibbs flip from $s = 1 - \rho$."""
    return jnp.asarray((1 - score) / (2 - score))


class RootDimension(AbstractHeuristic):
    r"""The length-scale $\sqrt d$ for binary vectors, which differ by a few multiples of it.

    >>> import numpy as np
    >>> float(RootDimension()(np.zeros((3, 4))))
    2.0
    """

    def __call__(self, x: Points) -> jax.Array:
        return jnp.sqrt(jnp.asarray(float(x.shape[1])))


class Hamming(AbstractKernel):
    r"""The kernel $\exp(-|\{i : x_i \ne y_i\}| / \ell)$ of binary vectors.

    It is the product over coordinates of $e^{-1/\ell}$ where they differ, so its Stein kernel under `Glauber`
    is a few inner products, where flipping all pairs of coordinates would take $d^2$ evaluations.

    Args:
        length_scale: $\ell$, a number or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Hamming(1.0)(jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0]))), 4)
    0.3679
    """

    length_scale: Hyperparameter = eqx.field(
        converter=hyperparameter, default_factory=RootDimension
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(-(x.sum() + y.sum() - 2 * (x @ y)) / self.length_scale)

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""Evaluate the Stein kernel under `Glauber`, with $a = 1/\ell$ and signs $t = 2x - 1$.

        A flip of $x_i$ multiplies $k$ by $\cosh a - t_i t'_i \sinh a$, and

        $$ k_0 = 2 k \sum_i q_i q'_i \bigl( 1 - \cosh a + t_i t'_i \sinh a \bigr) $$
        """
        if not isinstance(operator, Glauber):
            return None
        a, q_x, q_y = 1 / self.length_scale, flip_rate(score_x), flip_rate(score_y)
        signed = (q_x * (2 * x - 1)) @ (q_y * (2 * y - 1))
        return 2 * self(x, y) * ((1 - jnp.cosh(a)) * (q_x @ q_y) + jnp.sinh(a) * signed)


class Multilinear(AbstractLinearFamily):
    r"""Products of distinct coordinates of a binary vector, as fields along each coordinate.

    The basis functions are $u = x_i \prod_{j \in S} x_j\, e_i$ for every coordinate $i$ and every set $S$
    of up to `degree` - 1 others. Under `Glauber` their features are

    $$ \bigl( P(x_i = 1 \mid x_{-i}) - x_i \bigr) \prod_{j \in S} x_j , $$

    all functions up to that degree whose mean given $x_{-i}$ is zero. Powers of a coordinate are omitted,
    because $x_i^2 = x_i$.

    Args:
        degree: the highest number of coordinates in a product, 1 or more.
        operator: `Glauber()`, or another operator on fields.

    >>> import jax.numpy as jnp, numpy as np
    >>> x, score = jnp.array([1.0, 0.0]), jnp.array([0.5, 0.0])
    >>> np.asarray(Multilinear(2).features(None, x, score), float).round(2).tolist()
    [-0.33, 0.5, -0.0, 0.5]
    """

    degree: int = eqx.field(static=True, default=2)
    operator: AbstractOperator = eqx.field(default_factory=Glauber)

    def __check_init__(self) -> None:
        if self.degree < 1:
            raise ValueError(f"Multilinear({self.degree}): the degree must be 1 or more.")
        if not self.operator.acts_on_fields:
            raise ValueError(
                f"Multilinear is a family of vector fields, and {type(self.operator).__name__} acts on "
                "potentials: use operator=Glauber(), or Polynomial for potentials."
            )

    def setup(self, x: Points, score: Points) -> None:
        return None

    def size(self, state: PyTree, dim: int) -> int:
        return dim * sum(comb(dim - 1, j) for j in range(min(self.degree, dim)))

    def basis(self, state: PyTree, x: Point) -> jax.Array:
        flipped, others = products(x.shape[0], self.degree)
        values = x[flipped] * _product(x, others)
        return values[:, None] * jax.nn.one_hot(flipped, x.shape[0], dtype=x.dtype)

    def features(self, state: PyTree, x: Point, score: Point) -> jax.Array:
        if not isinstance(self.operator, Glauber):
            return super().features(state, x, score)
        flipped, others = products(x.shape[0], self.degree)
        expected = flip_rate(score) * (1 - 2 * x)
        return expected[flipped] * _product(x, others)

    @property
    def is_parametric(self) -> bool:
        return True


@cache
def products(dim: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """List the coordinate that flips, (p,), and its other factors, (p, degree - 1), padded with `dim`."""
    factors = [
        (i, others + (dim,) * (degree - 1 - size))
        for size in range(min(degree, dim))
        for i in range(dim)
        for others in combinations([j for j in range(dim) if j != i], size)
    ]
    flipped, others = zip(*factors, strict=True)
    return np.array(flipped, np.int32), np.array(others, np.int32).reshape(len(flipped), degree - 1)


def _product(x: Point, others: np.ndarray) -> jax.Array:
    """Multiply the coordinates of each row of `others`: (p,)."""
    padded = jnp.concatenate([jnp.asarray(x), jnp.ones(1, x.dtype)])
    return jnp.prod(padded[others], axis=1)


DEGREES = range(1, 4)
STATES_PER_COEFFICIENT = 2


class Binary(AbstractSpace):
    r"""The binary vectors $\{0, 1\}^d$: spins, inclusions of variables, memberships, edges of a graph.

    The score of a draw is $s_i = 1 - \pi(x^i) / \pi(x)$, where $x^i$ is $x$ with coordinate $i$ flipped;
    `scores` computes it from the log mass function, with $d + 1$ evaluations for each distinct draw. A Gibbs
    sampler computes the probabilities $p_i = P(x_i = 1 \mid x_{-i})$ anyway: with those, the ratio
    $\pi(x^i) / \pi(x)$ is $(1 - p_i) / p_i$ where $x_i = 1$, and $p_i / (1 - p_i)$ where it is 0.

    >>> import jax.numpy as jnp, numpy as np, steinax as sx
    >>> p = np.array([0.2, 0.7])
    >>> x = (np.random.default_rng(0).random((4, 250, 2)) < p).astype(float)
    >>> binary = sx.spaces.Binary()
    >>> scores = binary.scores(lambda x: jnp.sum(x * np.log(p / (1 - p))), x)
    >>> est = sx.estimate("x", sx.Sample(x, scores, space=binary))
    >>> np.allclose(est.value, p, atol=1e-10)
    True
    """

    @property
    def domain(self) -> str:
        return "binary"

    @property
    def operator(self) -> Glauber:
        return Glauber()

    @property
    def potential_operator(self) -> ScalarGlauber:
        return ScalarGlauber()

    @property
    def is_discrete(self) -> bool:
        return True

    def check(self, draws: Chains) -> None:
        wrong = (draws != 0) & (draws != 1)
        if wrong.any():
            column = int(wrong.any(axis=(0, 1)).argmax())
            hint = (
                "spins of -1 and 1 are (draws + 1) / 2" if (draws == -1).any() else "leave them out"
            )
            raise ValueError(
                f"{int(wrong.any(axis=2).sum())} draws are not of 0 and 1, first in column {column} "
                f"({draws[wrong][0]:.6g}): give zeros and ones; {hint}."
            )

    def scores(self, log_pmf: Callable[[Point], AnyArray], draws: ArrayLike) -> np.ndarray:
        r"""Compute the scores $1 - \pi(x^i) / \pi(x)$ of draws, in the shape of the draws.

        Args:
            log_pmf: $\log \pi$ of one draw up to a constant, written in jax.
            draws: (chain, draw, dim), or (draw, dim).

        >>> import jax.numpy as jnp
        >>> Binary().scores(lambda x: jnp.sum(x * jnp.log(3.0)), [[0.0], [1.0]]).round(3).tolist()
        [[-2.0], [0.667]]
        """
        return ratio_scores(self, log_pmf, draws, lambda x: flips(jnp.asarray(x)))

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero: $x_i - p_i$ and $(x_i - p_i) x_j$, each of root mean square 1.

        Here $p_i = P(x_i = 1 \mid x_{-i})$. Negative ratios give a further series, zero if there are none.
        """
        rho = np.maximum(1.0 - scores, 0.0)
        deviation = rho / (1.0 + rho) * (2 * draws - 1)
        pairs = pair_products(deviation, draws - draws.mean(axis=(0, 1)))
        negative = np.maximum(scores - 1.0, 0.0)
        return unit_size(np.concatenate([deviation, negative, *pairs], axis=2))

    def family(self, n: int, dim: int) -> Multilinear:
        return of_highest_degree(self._multilinear, DEGREES, n, dim, STATES_PER_COEFFICIENT)

    def families(self, n: int, dim: int) -> tuple[AbstractLinearFamily, ...]:
        products = affordable(self._multilinear, DEGREES, n, dim, STATES_PER_COEFFICIENT)
        kernel = KernelTranslates(Hamming(), operator=self.operator)
        return candidates(products, kernel if n >= KERNEL_STATES else None, dim)

    def _multilinear(self, degree: int) -> Multilinear:
        return Multilinear(degree, self.operator)

    def __repr__(self) -> str:
        return "Binary()"
