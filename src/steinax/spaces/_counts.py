"""Counts: the space N^d, its operators and its kernel."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._numerics import as_leaf
from .._types import AnyArray, Chains, Point, Points, Scalar
from ..auditing import standardised
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, Polynomial
from ..kernels import AbstractHeuristic, AbstractKernel
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


class SteinChen(AbstractOperator):
    r"""The Stein-Chen operator on vector fields over the counts $\mathbb{N}^d$.

    $$ \mathcal{L} u(x) = \sum_i u_i(x) - \rho_i(x)\, u_i(x - e_i), \qquad
       \rho_i(x) = \frac{\pi(x - e_i)}{\pi(x)} $$

    with $\rho_i = 0$ where $x_i = 0$. The score is $s_i = 1 - \rho_i(x)$, so that a constant field gives
    $u \cdot s$, as under `Langevin`. For a Poisson target, $\rho = x / \lambda$, it is the operator of
    Chen (1975). The sum over all counts telescopes, so the mean is zero if $\pi(x)\, u_i(x)$ tends to zero,
    as it does for polynomials if the tails fall faster than every power. Counts must have no upper bound.

    >>> import jax.numpy as jnp
    >>> x, rate = jnp.array([3.0]), 2.0
    >>> float(SteinChen()(lambda x: rate * jnp.ones(1), x, 1 - x / rate))  # rate - x
    -1.0
    """

    references: ClassVar[tuple[str, ...]] = ("chen1975poisson", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return True

    @property
    def domain(self) -> str:
        return "counts"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        below = jnp.diagonal(jax.vmap(u)(one_less(x)), axis1=0, axis2=-1)  # u_i(x - e_i)
        return jnp.sum(u(x) - (1 - score) * below, axis=-1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        def field(x):
            below = jax.vmap(lambda z: kernel(x, z))(one_less(y))
            return kernel(x, y) - (1 - score) * below

        return field


class BirthDeath(AbstractOperator):
    r"""The generator of a birth and death process, on potentials over the counts $\mathbb{N}^d$.

    $$ \mathcal{L} v(x) = \sum_i v(x + e_i) - v(x) + \rho_i(x) \bigl( v(x - e_i) - v(x) \bigr) $$

    Births have rate 1 and deaths $\rho_i(x) = \pi(x - e_i) / \pi(x)$, by detailed balance. It is
    `SteinChen` applied to the differences $v(x + e_i) - v(x)$, and the one used with polynomials; the
    score is $s_i = 1 - \rho_i(x)$.

    >>> import jax.numpy as jnp
    >>> x, rate = jnp.array([3.0]), 2.0
    >>> float(BirthDeath()(lambda x: rate * x[0], x, 1 - x / rate))  # rate - x
    -1.0
    """

    references: ClassVar[tuple[str, ...]] = ("chen1975poisson", "yang2018goodness")

    @property
    def acts_on_fields(self) -> bool:
        return False

    @property
    def domain(self) -> str:
        return "counts"

    def __call__(self, u: Function, x: Point, score: Point) -> jax.Array:
        value = u(x)
        born = jax.vmap(u)(x + jnp.eye(x.shape[-1], dtype=x.dtype)) - value
        died = jax.vmap(u)(one_less(x)) - value
        return born.sum(axis=0) + jnp.tensordot(1 - score, died, axes=1)

    def representer(self, kernel: PairFunction, y: Point, score: Point) -> Function:
        return lambda x: self(lambda z: kernel(x, z), y, score)


def one_less(x: Point) -> jax.Array:
    """Return the points with each coordinate reduced by one in turn, (dim, dim); zeros stay zero.

    Where a coordinate is zero the ratio is zero, and a function need not be defined below zero.
    """
    return jnp.maximum(x - jnp.eye(x.shape[-1], dtype=x.dtype), 0)


class StandardDeviations(AbstractHeuristic):
    r"""A length-scale for each coordinate, $a \sqrt d$ times its standard deviation.

    Args:
        factor: the factor $a$.

    >>> import numpy as np
    >>> StandardDeviations(2.0)(np.array([[0.0], [2.0]])).tolist()
    [2.0]
    """

    factor: Scalar = eqx.field(converter=as_leaf, default=1.0)

    def __call__(self, x: Points) -> jax.Array:
        x = jnp.asarray(x)
        return self.factor * jnp.sqrt(float(x.shape[1])) * jnp.std(x, axis=0)


if TYPE_CHECKING:  # a heuristic is an array by the time it is used in a formula
    LengthScales = Any
else:
    LengthScales = Float[AnyArray, " dim"] | AbstractHeuristic


class Lattice(AbstractKernel):
    r"""The kernel $\exp(-\tfrac12 \sum_i (x_i - y_i)^2 / \ell_i^2)$ of counts.

    Draws of a space are not standardised, so there is a length-scale for each coordinate. The Stein kernel
    under `SteinChen` has a closed form.

    Args:
        length_scales: $\ell$, one for each coordinate, or a heuristic.

    >>> import jax.numpy as jnp
    >>> round(float(Lattice([1.0, 2.0])(jnp.zeros(2), jnp.array([0.0, 2.0]))), 4)
    0.6065
    """

    length_scales: LengthScales = eqx.field(
        converter=lambda value: (
            value
            if isinstance(value, AbstractHeuristic | jax.Array)
            else np.asarray(value, np.float64)
        ),
        default_factory=StandardDeviations,
    )

    def __call__(self, x: Point, y: Point) -> jax.Array:
        return jnp.exp(-0.5 * jnp.sum(((x - y) / self.length_scales) ** 2))

    def closed_form(
        self, operator: AbstractOperator, x: Point, score_x: Point, y: Point, score_y: Point
    ) -> jax.Array | None:
        r"""Evaluate the Stein kernel under `SteinChen`.

        Reducing $x_i$ by one multiplies $k$ by $\exp((\delta_i - \tfrac12) / \ell_i^2)$, $\delta = x - y$.

        $$ k_0 = k \sum_i 1 - \rho_i e^{(\delta_i - 1/2) / \ell_i^2}
           - \rho'_i e^{-(\delta_i + 1/2) / \ell_i^2} + \rho_i \rho'_i $$
        """
        if not isinstance(operator, SteinChen):
            return None
        rate, gap, left, right = 1 / self.length_scales**2, x - y, 1 - score_x, 1 - score_y
        down = left * jnp.exp((gap - 0.5) * rate) + right * jnp.exp(-(gap + 0.5) * rate)
        return self(x, y) * jnp.sum(1 - down + left * right)


DEGREES = range(1, 5)
STATES_PER_COEFFICIENT = 3


class Counts(AbstractSpace):
    r"""The counts $\mathbb{N}^d = \{0, 1, 2, \ldots\}^d$: latent counts, population sizes, numbers of events.

    The score of a draw is $s_i = 1 - \pi(x - e_i) / \pi(x)$, and 1 where $x_i = 0$: then $E[s_i] = 0$ and
    $E[x_i s_j] = -1_{i = j}$, as for gradients. `scores` computes it from the log mass function, with $d + 1$
    evaluations for each distinct draw. Every count must be possible: the audit rejects counts with an upper
    bound, if the bound matters.

    >>> import jax, numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).poisson([2.0, 5.0], size=(4, 250, 2)).astype(float)
    >>> def log_pmf(x):
    ...     return jax.scipy.stats.poisson.logpmf(x, np.array([2.0, 5.0])).sum()
    >>> counts = sx.spaces.Counts()
    >>> est = sx.estimate("x", sx.Sample(x, counts.scores(log_pmf, x), space=counts))
    >>> np.allclose(est.value, [2.0, 5.0], atol=1e-10)
    True
    """

    @property
    def domain(self) -> str:
        return "counts"

    @property
    def operator(self) -> SteinChen:
        return SteinChen()

    @property
    def potential_operator(self) -> BirthDeath:
        return BirthDeath()

    @property
    def is_discrete(self) -> bool:
        return True

    def check(self, draws: Chains) -> None:
        wrong = (draws < 0) | (draws != np.round(draws))
        if wrong.any():
            column = int(wrong.any(axis=(0, 1)).argmax())
            raise ValueError(
                f"{int(wrong.any(axis=2).sum())} draws are not counts, first in column {column} "
                f"({draws[wrong][0]:.6g}): give whole numbers from 0 on, and continuous columns as a "
                "sample of their own."
            )

    def scores(self, log_pmf: Callable[[Point], AnyArray], draws: ArrayLike) -> np.ndarray:
        r"""Compute the scores $1 - \pi(x - e_i) / \pi(x)$ of draws, in the shape of the draws.

        Args:
            log_pmf: $\log \pi$ of one draw up to a constant, written in jax.
            draws: (chain, draw, dim), or (draw, dim).

        >>> import jax.numpy as jnp
        >>> Counts().scores(lambda x: jnp.sum(-0.5 * x), [[0.0], [2.0]]).round(3).tolist()
        [[1.0], [-0.649]]
        """
        scores = ratio_scores(self, log_pmf, draws, lambda x: one_less(jnp.asarray(x)))
        return np.where(np.asarray(draws) > 0, scores, 1.0)

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""Compute series of mean zero, $\varphi(x) - \rho_i(x)\, \varphi(x - e_i)$, of root mean square 1.

        $\varphi$ is $1$, $y_i$, $\tanh y_i$, $\cos 2 y_i$, and $\tanh y_j$ of another coordinate, with $y$
        the standardised draws. A further series is zero if $\rho_i = 0$ where $x_i = 0$ and $\rho_i \ge 0$.
        """
        y, scale = standardised(draws)
        rho, below = 1.0 - scores, y - 1.0 / scale
        single = [y - rho * below, np.tanh(y) - rho * np.tanh(below)]
        wave = np.cos(2 * y) - rho * np.cos(2 * below)
        pairs = pair_products(scores, np.tanh(y))
        edge = np.where(draws == 0, rho, np.minimum(rho, 0.0))
        return unit_size(np.concatenate([scores, *single, wave, edge, *pairs], axis=2))

    def family(self, n: int, dim: int) -> Polynomial:
        return of_highest_degree(self._polynomial, DEGREES, n, dim, STATES_PER_COEFFICIENT)

    def families(self, n: int, dim: int) -> tuple[AbstractLinearFamily, ...]:
        polynomials = affordable(self._polynomial, DEGREES, n, dim, STATES_PER_COEFFICIENT)
        kernel = KernelTranslates(Lattice(), operator=self.operator)
        return candidates(polynomials, kernel if n >= KERNEL_STATES else None, dim, in_tails=True)

    def _polynomial(self, degree: int) -> Polynomial:
        return Polynomial(degree, operator=self.potential_operator)

    def __repr__(self) -> str:
        return "Counts()"
