import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag, solve_triangular

from .._types import AnyArray, Coefficients, Points, Values
from ..families import Landmarks
from ._columns import Columns, columns
from ._landmarks import Wide, nystrom_columns
from ._linear_system import Term
from ._rows import Root, centred, scaled

LANDMARKS = 1000


class Whitened(eqx.Module):
    r"""A linear problem in coordinates in which its Hessian is the identity.

    The columns $A$ of all terms are centred and turned by $T$, $T^\top (A^\top A + P)\, T / m = 1$
    with $T^\top P T / m$ diagonal, so that $\frac1m \|f - A w\|^2 + \frac1m w^\top P w$ becomes
    $\frac1m \|f - Z v\|^2 + \sum_j \gamma_j v_j^2$ with $w = T v$.
    """

    z: AnyArray
    shrink: AnyArray  # gamma
    turn: AnyArray  # T
    tail: AnyArray  # the mean eigenvalue of what the landmarks leave of the kernel
    narrow: tuple[Columns | None, ...]  # in the order of the terms; None for a wide one
    wide: Wide | None


def whiten(
    terms: tuple[Term, ...],
    wide: Wide | None,
    x: Points,
    score: Points,
    tail: AnyArray,
    root: Root = None,
) -> Whitened:
    """Find the coordinates, from the draws' moments and the landmarks of the wide terms.

    Coordinates in which the Hessian is smaller than `tail` are whitened as if it were that.
    """
    n, dim = x.shape
    narrow = tuple(None if is_wide(term, n, dim) else columns(term, x, score) for term in terms)
    parts = [part.matrix for part in narrow if part is not None]
    holding = [part.penalty for part in narrow if part is not None]
    if wide is not None:
        parts.append(wide.matrix)
        holding.append(jnp.eye(wide.matrix.shape[1], dtype=x.dtype))
    matrix = centred(scaled(jnp.concatenate(parts, axis=1), root), root)
    penalty = block_diag(*holding) / n
    hessian = matrix.T @ matrix / n + penalty
    floor = 8 * jnp.finfo(hessian.dtype).eps * jnp.trace(hessian)
    factor = jnp.linalg.cholesky(hessian + floor * jnp.eye(len(hessian), dtype=hessian.dtype))
    inner = solve_triangular(factor, penalty, lower=True)
    inner = solve_triangular(factor, inner.T, lower=True)
    shrink, vectors = jnp.linalg.eigh((inner + inner.T) / 2)
    shrink = jnp.clip(shrink, 0.0, 1.0)
    # gamma is the penalty's share 1 / m of the Hessian, so this is the Hessian over its floor
    damp = jnp.minimum(1.0, 1 / (jnp.maximum(shrink, 1e-300) * (n * tail + 1)))
    turn = solve_triangular(factor, vectors, lower=True, trans=1) * jnp.sqrt(damp)
    return Whitened(matrix @ turn, shrink * damp, turn, tail, narrow, wide)


def is_wide(term: Term, n: int, dim: int) -> bool:
    """Whether a term is used through its kernel: it has one, and more coefficients than landmarks."""
    return term.has_kernel and term.size(dim) >= min(n, LANDMARKS)


def rest_of_kernel(
    wide: Wide | None, x: Points, score: Points, root: Root = None
) -> jax.Array | None:
    """What the landmarks leave of the wide terms' kernel, centred: (n, n); None if nothing."""
    if wide is None or x.shape[0] <= LANDMARKS:
        return None
    rest = sum((t.kernel(x, score, x, score) for t in wide.terms), -wide.matrix @ wide.matrix.T)
    rest = centred(scaled(scaled(rest, root).T, root).T, root)
    return rest - jnp.mean(rest, axis=1)[:, None] if root is None else centred(rest.T, root).T


def coefficients(
    white: Whitened,
    x: Points,
    score: Points,
    v: Coefficients,
    beta: Values | None,
    root: Root = None,
) -> jax.Array:
    """The coefficients of all terms, from those of the coordinates and of the kernel's rest."""
    w = white.turn @ v
    dual, wide = jnp.zeros((x.shape[0], w.shape[1]), w.dtype), white.wide
    if wide is not None:
        own = w[-wide.matrix.shape[1] :]
        if beta is not None:
            dual = scaled(centred(beta, root), root)
            own = own - wide.matrix.T @ dual
        dual = dual.at[wide.index].add(wide.back @ own)
    done, used = [], 0
    others = iter(() if wide is None else wide.terms)
    for part in white.narrow:
        if part is None:
            done.append(next(others).from_dual(x, score, dual))
        else:
            width = part.matrix.shape[1]
            done.append(part.coefficients(w[used : used + width]))
            used += width
    return jnp.concatenate(done)


def landmarks_of(terms: tuple[Term, ...], x: Points, score: Points) -> Wide | None:
    """The wide terms, on up to 1,000 landmarks, evenly spaced; None if there are none."""
    n, dim = x.shape
    chosen = tuple(term for term in terms if is_wide(term, n, dim))
    if not chosen:
        return None
    return nystrom_columns(chosen, x, score, Landmarks(LANDMARKS).choose(n))
