"""The columns of a problem whose wide terms are used through their kernel, on landmarks."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag

from .._types import Coefficients, Points
from ._linear_system import Term


class NystromColumns(eqx.Module):
    r"""The features of narrow terms, then the kernel of the wide ones at the landmarks $S$."""

    terms: tuple[Term, ...]
    wide: tuple[bool, ...] = eqx.field(static=True)
    landmarks: tuple[Points, Points]

    @property
    def states(self) -> tuple:
        """The state of every term."""
        return tuple(term.state for term in self.terms)

    @property
    def width(self) -> int:
        """How many columns the wide terms have."""
        return len(self.landmarks[0]) if any(self.wide) else 0

    def centres(self) -> np.ndarray:
        """The landmark that each column is centred on, -1 where there is none."""
        dim, own = self.landmarks[0].shape[1], np.arange(len(self.landmarks[0]))
        parts = [
            own if term.family.is_whole_space else np.full(term.size(dim), -1)
            for term in self._terms(False)
        ]
        return np.concatenate([*parts, own[: self.width]])

    @eqx.filter_jit
    def matrix(self, x: Points, score: Points) -> jax.Array:
        """The columns of some draws: narrow terms first."""
        parts = [t.family.feature_matrix(t.state, x, score) for t in self._terms(False)]
        if any(self.wide):
            parts.append(self._kernel(x, score))
        return jnp.concatenate(parts, axis=1)

    def penalty(self) -> np.ndarray:
        """The matrix of the penalty on their coefficients."""
        dim = self.landmarks[0].shape[1]
        parts = []
        for term in self._terms(False):
            own = _gram(term, dim)
            own = np.eye(term.size(dim)) if own is None else np.asarray(own)
            parts.append(own * (0.0 if term.is_free else float(term.weight)))
        if any(self.wide):
            parts.append(np.asarray(self._kernel(*self.landmarks)))
        return np.asarray(block_diag(*parts))

    def coefficients(self, w: Coefficients) -> jax.Array:
        """The coefficients of all terms, in their own order, from those of the columns."""
        dim, used, parts = self.landmarks[0].shape[1], 0, []
        own = jnp.asarray(w)[len(w) - self.width :]
        for term, wide in zip(self.terms, self.wide, strict=True):
            if wide:
                parts.append(term.from_dual(*self.landmarks, own))
            else:
                size = term.size(dim)
                parts.append(w[used : used + size])
                used += size
        return jnp.concatenate(parts)

    def _terms(self, wide: bool) -> tuple[Term, ...]:
        each = zip(self.terms, self.wide, strict=True)
        return tuple(term for term, is_wide in each if is_wide is wide)

    @eqx.filter_jit
    def _kernel(self, x: Points, score: Points) -> jax.Array:
        parts = [term.kernel(x, score, *self.landmarks) for term in self._terms(True)]
        return sum(parts[1:], parts[0])


@eqx.filter_jit
def _gram(term: Term, dim: int) -> jax.Array | None:
    return term.gram(dim)


def nystrom_terms(
    terms: tuple[Term, ...], count: int, landmarks: tuple[Points, Points]
) -> NystromColumns:
    """Columns for terms, the widest by their kernel.

    A control functional is set up on the landmarks alone, and so evaluated at their cost. Any other
    term with more than `count` coefficients goes by its kernel, if a penalty gives it one.
    """
    dim = landmarks[0].shape[1]
    wide = tuple(
        term.has_kernel and not term.family.is_whole_space and term.size(dim) > count
        for term in terms
    )
    placed = tuple(
        replace(term, state=term.family.setup(*landmarks)) if term.family.is_whole_space else term
        for term in terms
    )
    return NystromColumns(placed, wide, landmarks)
