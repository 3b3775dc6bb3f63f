from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike, DTypeLike

from .._types import AnyArray, Chains, Points
from ._arrays import as_chains, as_flags, as_log_density, as_weights, kish_size
from ._labels import common, unlabelled
from ._space import AbstractSpace, check_draws
from ._variables import Variables


class Sample(eqx.Module):
    r"""Draws and their scores: the only data type the core knows.

    The score of a draw $x$ is $\nabla \log \pi(x)$, the gradient of the log density, on the
    unconstrained space in which the draws are given. The density need not be normalised.

    Args:
        draws: $x_i$, shape (chain, draw, dim), or (draw, dim) for one chain: an array, a data frame, or
            a DataArray with axes `chain` and `draw` in any order.
        scores: $\nabla \log \pi(x_i)$, of the same shape.
        names: one name per dimension; those of a data frame's columns, or `x[0]`, `x[1]`, ... when not
            given.
        dtype: float64, in which estimates are computed, or float32, which halves the memory and
            leaves about seven digits: variance reductions beyond a factor of 1e10 or so are lost.
        diverging: which draws ended in a divergence, (chain, draw), for the audit to count.
        variables: the model's own quantities on every draw, where they are constrained, to be asked
            for by name: a DataTree with a group `posterior`, or a Dataset. Adapters fill it.
        log_weights: logarithms of importance weights, (chain, draw), of draws from another density than
            that of the scores; any constant may be added to all. Those of SMC particles too. They are
            kept as they are: `steinax.data.pareto_smoothed` makes smoother ones.
        space: where the draws live, one of `steinax.spaces`; all of R^d by default.
        log_density: $\log \pi(x_i)$ up to a constant, (chain, draw), as most samplers keep it (`lp__` of
            Stan). The audit holds the scores to its differences. Adapters fill it.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> Sample(x, -x, names=["mu", "log_tau"])
    Sample(4 chains x 250 draws, 2 dimensions: mu, log_tau)
    """

    draws: Chains
    scores: Chains
    names: tuple[str, ...] = eqx.field(static=True)
    diverging: Bool[AnyArray, "chain draw"] | None
    variables: Variables | None = eqx.field(static=True)
    weights: Float[AnyArray, "chain draw"] | None  # of mean 1
    space: AbstractSpace | None
    log_density: Float[AnyArray, "chain draw"] | None

    def __init__(
        self,
        draws: ArrayLike,
        scores: ArrayLike = None,  # pyright: ignore[reportArgumentType]  # missing: told below
        names: Sequence[str] | None = None,
        dtype: DTypeLike = np.float64,
        diverging: ArrayLike | None = None,
        variables: Any = None,
        log_weights: ArrayLike | None = None,
        space: AbstractSpace | None = None,
        log_density: ArrayLike | None = None,
    ):
        draws, of_draws = unlabelled(draws)
        scores, of_scores = unlabelled(scores)
        self.draws = as_chains(draws, "draws", dtype)
        self.scores = as_chains(scores, "scores", dtype)
        if self.draws.shape != self.scores.shape:
            raise ValueError(
                f"draws have shape {self.draws.shape} and scores {self.scores.shape}: each draw needs "
                "its own score, a gradient with one entry per dimension. Give both as "
                "(chain, draw, dim)."
            )
        self.names = as_names(common(of_draws, of_scores) if names is None else names, self.dim)
        self.diverging = None if diverging is None else as_flags(diverging, self.draws.shape[:2])
        self.weights = (
            None if log_weights is None else as_weights(log_weights, self.draws.shape[:2])
        )
        self.space = check_draws(space, self.draws)
        shape = self.draws.shape[:2]
        self.log_density = None if log_density is None else as_log_density(log_density, shape)
        self.variables = None if variables is None else Variables(variables)
        if self.variables is not None and self.variables.sizes != self.draws.shape[:2]:
            raise ValueError(
                f"the variables have {self.variables.sizes} chains and draws, and the draws "
                f"{self.draws.shape[:2]}: give those of the same draws, warm-up left out of both."
            )

    @property
    def chains(self) -> int:
        """The number of chains."""
        return self.draws.shape[0]

    @property
    def length(self) -> int:
        """The number of draws in each chain."""
        return self.draws.shape[1]

    @property
    def dim(self) -> int:
        """The dimension of a draw."""
        return self.draws.shape[2]

    @property
    def size(self) -> int:
        """The number of draws in all chains together."""
        return self.chains * self.length

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type that everything is computed in."""
        return np.dtype(self.draws.dtype)

    @property
    def x(self) -> Points:
        """All draws, chains one after the other: (n, dim)."""
        return self.draws.reshape(self.size, self.dim)

    @property
    def score(self) -> Points:
        """All scores, in the order of `x`: (n, dim)."""
        return self.scores.reshape(self.size, self.dim)

    def blocks(self, size: int) -> Iterator["Sample"]:
        """Yield the draws as one-chain samples of at most `size`, none crossing a chain's end."""
        for chain, (draws, scores) in enumerate(zip(self.draws, self.scores, strict=True)):
            for start in range(0, self.length, size):
                part = slice(start, start + size)
                flags = None if self.diverging is None else self.diverging[chain, part]
                also = None if self.variables is None else self.variables.part(chain, part)
                own = (draws[part], scores[part], self.names, self.dtype, flags, also)
                density = None if self.log_density is None else self.log_density[chain, part]
                made = Sample(*own, space=self.space, log_density=density)
                if self.weights is not None:  # as they are among all draws, not of mean 1
                    own = self.weights[chain, part][None]
                    made = eqx.tree_at(lambda one: one.weights, made, own, is_leaf=_is_none)
                yield made

    def __repr__(self) -> str:
        names = self.names if self.variables is None else self.variables.names
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        chains = "1 chain" if self.chains == 1 else f"{self.chains} chains"
        dims = "1 dimension" if self.dim == 1 else f"{self.dim} dimensions"
        worth = (
            "" if self.weights is None else f", weights worth {kish_size(self.weights):.0f} draws"
        )
        return f"Sample({chains} x {self.length} draws, {dims}: {shown}{worth})"


def _is_none(node: object) -> bool:
    return node is None


def as_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    """One distinct name for each dimension, `x[0]`, `x[1]`, ... when none are given."""
    if names is None:
        return tuple(f"x[{i}]" for i in range(dim))
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"the names {names!r} are not a list of strings: give one string for each column of the "
            'draws, such as names=["mu", "tau"].'
        )
    if len(names) != dim or len(set(names)) != dim:
        raise ValueError(
            f"{len(names)} names for {dim} dimensions: give one distinct name for each column of the draws, "
            "or none at all."
        )
    return tuple(names)
