from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Chains, Point
from ..auditing._identities import standardised
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, Polynomial
from ..kernels import Lattice
from ..operators import BirthDeath, SteinChen
from ..operators._counts import one_less
from ._common import beside_others, unit_size
from ._families import KERNEL_STATES, affordable, candidates, of_highest_degree
from ._ratios import ratio_scores

DEGREES = range(1, 5)
STATES_PER_COEFFICIENT = 3


class Counts(AbstractSpace):
    r"""The counts $\mathbb{N}^d = \{0, 1, 2, \ldots\}^d$: latent counts, population sizes, numbers of events.

    The score of a draw is $s_i = 1 - \pi(x - e_i) / \pi(x)$, and 1 where $x_i = 0$: then $E[s_i] = 0$ and
    $E[x_i s_j] = -1_{i = j}$, as for gradients. `scores` computes it from the log mass function, with $d + 1$
    evaluations for each distinct draw. Every count must be possible: counts with an upper end are refused by
    the audit, if the end matters.

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
        r"""The scores $1 - \pi(x - e_i) / \pi(x)$ of draws, of their shape.

        Args:
            log_pmf: $\log \pi$ up to a constant, of one draw, made of jax.
            draws: (chain, draw, dim), or (draw, dim).

        >>> import jax.numpy as jnp
        >>> Counts().scores(lambda x: jnp.sum(-0.5 * x), [[0.0], [2.0]]).round(3).tolist()
        [[1.0], [-0.649]]
        """
        found = ratio_scores(self, log_pmf, draws, lambda x: one_less(jnp.asarray(x)))
        return np.where(np.asarray(draws) > 0, found, 1.0)

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""$E[\varphi(x) - \rho_i(x)\, \varphi(x - e_i)] = 0$, in units of their size.

        $\varphi$ is $1$, $y_i$, $\tanh y_i$, $\cos 2 y_i$, and $\tanh y_j$ of another coordinate, with $y$
        the standardised draws; and $\rho_i$ is zero where $x_i$ is, and nowhere negative.
        """
        y, scale = standardised(draws)
        rho, below = 1.0 - scores, y - 1.0 / scale
        own = [y - rho * below, np.tanh(y) - rho * np.tanh(below)]
        wave = np.cos(2 * y) - rho * np.cos(2 * below)
        pairs = beside_others(scores, np.tanh(y))
        edge = np.where(draws == 0, rho, np.minimum(rho, 0.0))
        return unit_size(np.concatenate([scores, *own, wave, edge, *pairs], axis=2))

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
