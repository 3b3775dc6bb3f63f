from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._types import AnyArray, Chains, Point
from ..data import AbstractSpace
from ..families import AbstractLinearFamily, KernelTranslates, Multilinear
from ..kernels import Hamming
from ..operators import Glauber, ScalarGlauber
from ..operators._binary import flips
from ._common import beside_others, unit_size
from ._families import KERNEL_STATES, affordable, candidates, of_highest_degree
from ._ratios import ratio_scores

DEGREES = range(1, 4)
STATES_PER_COEFFICIENT = 2


class Binary(AbstractSpace):
    r"""The binary vectors $\{0, 1\}^d$: spins, inclusions of variables, memberships, edges of a graph.

    The score of a draw is $s_i = 1 - \pi(x^i) / \pi(x)$, where $x^i$ is $x$ with coordinate $i$ flipped;
    `scores` computes it from the log mass function, with $d + 1$ evaluations for each distinct draw. A Gibbs
    sampler has computed the chances $p_i = P(x_i = 1 \mid x_{-i})$ on its way: with those, the ratio
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
        r"""The scores $1 - \pi(x^i) / \pi(x)$ of draws, of their shape.

        Args:
            log_pmf: $\log \pi$ up to a constant, of one draw, made of jax.
            draws: (chain, draw, dim), or (draw, dim).

        >>> import jax.numpy as jnp
        >>> Binary().scores(lambda x: jnp.sum(x * jnp.log(3.0)), [[0.0], [1.0]]).round(3).tolist()
        [[-2.0], [0.667]]
        """
        return ratio_scores(self, log_pmf, draws, lambda x: flips(jnp.asarray(x)))

    def identities(self, draws: Chains, scores: Chains) -> AnyArray:
        r"""$E[x_i - p_i] = 0$ and $E[(x_i - p_i) x_j] = 0$, in units of their size.

        Here $p_i = P(x_i = 1 \mid x_{-i})$. And no ratio is negative.
        """
        rho = np.maximum(1.0 - scores, 0.0)
        left = rho / (1.0 + rho) * (2 * draws - 1)
        pairs = beside_others(left, draws - draws.mean(axis=(0, 1)))
        negative = np.maximum(scores - 1.0, 0.0)
        return unit_size(np.concatenate([left, negative, *pairs], axis=2))

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
