from collections.abc import Iterator, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool
from numpy.typing import ArrayLike, DTypeLike

from .._types import AnyArray, Chains, Points
from ._variables import Variables


class Sample(eqx.Module):
    r"""Draws and their scores: the only data type the core knows.

    The score of a draw $x$ is $\nabla \log \pi(x)$, the gradient of the log density, on the
    unconstrained space in which the draws are given. The density need not be normalised.

    Args:
        draws: $x_i$, shape (chain, draw, dim), or (draw, dim) for one chain.
        scores: $\nabla \log \pi(x_i)$, of the same shape.
        names: one name per dimension; `x[0]`, `x[1]`, ... when not given.
        dtype: float64, in which estimates are computed, or float32, which halves the memory and
            leaves about seven digits: variance reductions beyond a factor of 1e10 or so are lost.
        diverging: which draws ended in a divergence, (chain, draw), for the audit to count.
        variables: the model's own quantities on every draw, where they are constrained, to be asked
            for by name: a DataTree with a group `posterior`, or a Dataset. Adapters fill it.

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

    def __init__(
        self,
        draws: ArrayLike,
        scores: ArrayLike,
        names: Sequence[str] | None = None,
        dtype: DTypeLike = np.float64,
        diverging: ArrayLike | None = None,
        variables: Any = None,
    ):
        self.draws = _as_chains(draws, "draws", dtype)
        self.scores = _as_chains(scores, "scores", dtype)
        if self.draws.shape != self.scores.shape:
            raise ValueError(
                f"draws have shape {self.draws.shape} and scores {self.scores.shape}: each draw needs "
                "its own score, a gradient with one entry per dimension. Give both as "
                "(chain, draw, dim)."
            )
        self.names = as_names(names, self.dim)
        self.diverging = None if diverging is None else _as_flags(diverging, self.draws.shape[:2])
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
                yield Sample(draws[part], scores[part], self.names, self.dtype, flags, also)

    def __repr__(self) -> str:
        names = self.names if self.variables is None else self.variables.names
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        chains = "1 chain" if self.chains == 1 else f"{self.chains} chains"
        dims = "1 dimension" if self.dim == 1 else f"{self.dim} dimensions"
        return f"Sample({chains} x {self.length} draws, {dims}: {shown})"


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


def _as_chains(values: ArrayLike, what: str, dtype: DTypeLike) -> np.ndarray:
    if dtype not in (np.float64, np.float32):  # their names as well: "float32"
        raise ValueError(f"dtype {dtype!r} is not supported: use float64 or float32.")
    array = as_reals(values, what)
    with np.errstate(over="ignore"):  # what is too large for float32 is refused below
        array = np.ascontiguousarray(array, dtype=dtype)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(
            f"{what} have shape {array.shape}: give (chain, draw, dim), or (draw, dim) for one chain. "
            "For a one-dimensional target add an axis: draws[..., None]."
        )
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        chain, draw, column = bad[0]
        raise ValueError(
            f"{what} hold {len(bad)} values that are not finite, the first at chain {chain}, draw "
            f"{draw}, dimension {column}: drop those draws, or find out why the sampler gave them."
        )
    return array


def as_reals(values: object, what: str) -> np.ndarray:
    """An array of real numbers, or a refusal: nothing is rounded, masked or parsed in silence."""
    if isinstance(values, np.ma.MaskedArray):
        if np.any(values.mask):
            raise ValueError(
                f"{what} are masked in part, and an average over them would not know: leave out the "
                "masked draws, and give a plain array."
            )
        values = values.data
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):  # rows of different lengths, mostly
        raise ValueError(
            f"{what} of type {type(values).__name__} make no array: give an array of numbers, with "
            "rows of equal length."
        ) from None
    if array.dtype.kind not in "fiu":
        raise ValueError(
            f"{what} are of type {array.dtype}: give real numbers, as an array of floats."
        )
    return array


def _as_flags(values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    flags = np.asarray(values)
    if flags.ndim == 1:
        flags = flags[None]
    if flags.shape != shape or not np.isin(flags, (0, 1)).all():
        raise ValueError(
            f"diverging has shape {flags.shape} and type {flags.dtype} beside draws of {shape} (chain, "
            "draw): give true or false for each draw, or leave it out."
        )
    return flags.astype(bool)
