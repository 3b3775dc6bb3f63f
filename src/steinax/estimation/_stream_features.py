"""The columns of a family's features, tile by tile: NumPy arrays from one compiled function."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import to_numpy
from .._types import AnyArray, Points
from ..data import AffineMap, Integrands, Sample, integrands
from ..data._compiled import filled, rounded
from ..data._integrands import IntegrandSpec
from ..solvers import Problem
from ..solvers._columns import columns
from ..solvers._linear_system import Term, linear_terms

TILE = 2**18  # numbers in a tile of features: 2 MB, which a core's own cache holds
STRIP = 2**20  # numbers that integrands read or fill at once: 8 MB


class Features(eqx.Module):
    """Everything that turns draws into columns; its arrays are NumPy's, so that it can be sent away.

    Attributes:
        coordinates: from draws to standardised draws.
        terms: the family's terms, set up.
        backs: what whitens each term's features by its own norm, a number or a matrix.
        size: how many columns there are.
    """

    coordinates: AffineMap
    terms: tuple[Term, ...]
    backs: tuple[AnyArray, ...]
    size: int = eqx.field(static=True)

    @eqx.filter_jit
    def matrix(self, x: Points, score: Points) -> jax.Array:
        """All columns, (n, p)."""
        z, score_z = self.coordinates(x, score)
        parts = []
        for term, back in zip(self.terms, self.backs, strict=True):
            features = term.family.feature_matrix(term.state, z, score_z)
            parts.append(features * back if back.ndim == 0 else features @ back)
        return jnp.concatenate(parts, axis=1)

    def tiles(
        self, f: IntegrandSpec, blocks: Iterator[Sample], k: int | None
    ) -> Iterator[tuple[np.ndarray, Integrands]]:
        """Columns (n, p) and integrands of the draws of some blocks, a few thousand at a time.

        Args:
            f: the integrands.
            blocks: one-chain samples.
            k: how many integrands there are, to bound the memory of their values; None if unknown.
        """
        dim = len(self.coordinates.shift)
        rows = _power(TILE // max(self.size, dim))
        for block in blocks:
            strip = rows if k is None else max(rows, _power(STRIP // max(k, dim)))
            for some in _strips(block, strip):
                wanted = integrands(f, some)
                k = len(wanted.names)
                values = wanted.values.reshape(some.size, -1)
                for start in range(0, some.size, rows):
                    part = slice(start, start + rows)
                    a = self._padded(some.x[part], some.score[part], min(rows, rounded(some.size)))
                    yield a, Integrands(values[None, part], wanted.names)

    def _padded(self, x: np.ndarray, score: np.ndarray, rows: int) -> np.ndarray:
        """The columns, by a function that is compiled for one number of rows."""
        return np.asarray(self.matrix(filled(x, rows), filled(score, rows)))[: len(x)]


def _power(n: int) -> int:
    """The largest power of two that is not larger, but at least 128."""
    return max(128, 1 << (max(n, 1).bit_length() - 1))


def _strips(block: Sample, rows: int) -> Iterator[Sample]:
    """A block, some draws at a time; its numbers are not checked again."""
    if block.size <= rows:
        yield block
    elif block.variables is not None:
        yield from block.blocks(rows)
    else:
        for start in range(0, block.size, rows):
            part = [one[:, start : start + rows] for one in (block.draws, block.scores)]
            yield eqx.tree_at(lambda some: [some.draws, some.scores], block, part)


def features_of(
    problem: Problem, coordinates: AffineMap, count: float
) -> tuple[Features, np.ndarray]:
    """The features of a problem, and the penalty matrix of their coefficients (p, p).

    Args:
        problem: with the draws that the family is set up on.
        coordinates: in which these are.
        count: how many draws each fit sees.
    """
    terms = linear_terms(problem, count=count)
    parts = [columns(term, problem.x[:1], problem.score[:1]) for term in terms]
    diagonal = np.concatenate([np.diag(np.asarray(part.penalty)) for part in parts])
    backs = tuple(part.back for part in parts)
    made = Features(*to_numpy((coordinates, terms, backs)), size=len(diagonal))
    return made, np.diag(diagonal)
