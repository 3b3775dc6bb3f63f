import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag, solve_triangular

from .._types import AnyArray, Values
from ._columns import Columns, can_use_landmarks, columns, landmark_columns
from ._linear_system import linear_terms
from ._primal import split_back
from ._problem import Problem

LANDMARKS = 1000


class Whitened(eqx.Module):
    r"""A linear problem in coordinates in which its Hessian is the identity.

    The columns $A$ of all terms (those of wide terms on landmarks) are centred and turned by $T$,
    $T^\top (A^\top A + P)\, T / m = 1$ with $T^\top P T / m$ diagonal, so $\frac1m \|f - A w\|^2 +
    \frac1m w^\top P w$ becomes $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ with $w = T v$.
    """

    z: AnyArray
    shrink: AnyArray  # gamma
    turn: AnyArray  # T
    centre: AnyArray  # of the features before they were centred
    parts: tuple[Columns, ...]

    def coefficients(self, v: Values) -> jax.Array:
        """The coefficients of all terms."""
        return split_back(self.parts, self.turn @ v)


def whiten(problem: Problem) -> Whitened:
    """Find the coordinates, from up to 1,000 landmark draws, evenly spaced."""
    x, score = problem.x, problem.score
    n = x.shape[0]
    index = np.linspace(0, n - 1, min(n, LANDMARKS)).round().astype(int)
    landmarks = (x[index], score[index])
    parts = tuple(
        landmark_columns(term, x, score, landmarks)
        if can_use_landmarks(term) and term.size(x.shape[1]) >= len(index)
        else columns(term, x, score)
        for term in linear_terms(problem)
    )
    matrix = jnp.concatenate([part.matrix for part in parts], axis=1)
    centre = jnp.mean(matrix, axis=0)
    matrix = matrix - centre
    penalty = block_diag(*(part.penalty for part in parts)) / n
    hessian = matrix.T @ matrix / n + penalty
    floor = 8 * jnp.finfo(hessian.dtype).eps * jnp.trace(hessian)
    factor = jnp.linalg.cholesky(hessian + floor * jnp.eye(len(hessian), dtype=hessian.dtype))
    inner = solve_triangular(factor, penalty, lower=True)
    inner = solve_triangular(factor, inner.T, lower=True)
    shrink, vectors = jnp.linalg.eigh((inner + inner.T) / 2)
    turn = solve_triangular(factor, vectors, lower=True, trans=1)
    return Whitened(matrix @ turn, jnp.clip(shrink, 0.0, 1.0), turn, centre @ turn, parts)
