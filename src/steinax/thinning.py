"""Kernel Stein discrepancy of a sample, and Stein thinning to a few representative draws."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ._numerics import precision, solve_triangular
from ._show import describe, progress
from ._types import AnyArray, Coefficients, OtherPoints, Point, Points
from .auditing import AuditMode, audited
from .chains import chain_statistics, controlled_statistics
from .citing import references_of
from .data import (
    AffineMap,
    Integrands,
    IntegrandSpec,
    Sample,
    Stream,
    Variables,
    as_reals,
    check_moves,
    check_sample,
    integrands,
)
from .estimation import PLAIN, Estimate, from_statistics, with_audit
from .families import KernelTranslates
from .kernels import AbstractKernel, InverseMultiquadric, resolve
from .operators import Langevin

__all__ = ["Thinned", "ksd", "thin"]


type Scored = tuple[Points, Points]  # points and their scores


class SteinKernel(eqx.Module):
    r"""A Stein kernel $k_0$ in the coordinates of an affine map."""

    kernel: AbstractKernel
    coordinates: AffineMap

    def scored(self, sample: Sample) -> Scored:
        """Return all draws of a sample and their scores, in these coordinates, in double precision."""
        x, score = self.coordinates(sample.x.astype(np.float64), sample.score.astype(np.float64))
        return jnp.asarray(x), jnp.asarray(score)

    def matrix(self, x: Points, score_x: Points, y: OtherPoints, score_y: OtherPoints) -> jax.Array:
        """Compute the matrix of $k_0(x_i, y_j)$, (n, m)."""
        return KernelTranslates(self.kernel).cross_gram(None, x, score_x, y, score_y)

    def to(self, x: Points, score_x: Points, y: Point, score_y: Point) -> jax.Array:
        """Compute all $k_0(x_i, y)$, (n,)."""
        return jax.vmap(lambda x, s: self._pair(x, s, y, score_y))(x, score_x)

    def diagonal(self, x: Points, score: Points) -> jax.Array:
        """Compute all $k_0(x_i, x_i)$, (n,)."""
        return jax.vmap(lambda x, s: self._pair(x, s, x, s))(x, score)

    def _pair(self, x: Point, score_x: Point, y: Point, score_y: Point) -> jax.Array:
        """Evaluate $k_0(x, y)$."""
        return self.kernel.stein(Langevin(), x, score_x, y, score_y)


def stein_kernel(
    sample: Sample, kernel: AbstractKernel | None, standardise: bool | AffineMap = True
) -> SteinKernel:
    """Build the Stein kernel of a sample: resolve heuristics, and scale each coordinate.

    Args:
        sample: the draws from which scales and heuristics are computed.
        kernel: the base kernel; an inverse multiquadric of length-scale 1 by default.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map.
    """
    _check(sample, kernel)
    x = sample.x.astype(np.float64)
    if isinstance(standardise, AffineMap):  # may be in single precision
        shift, scale = standardise.shift, standardise.scale
    else:
        shift, scale = x.mean(axis=0), _deviations(sample, x) if standardise else np.ones_like(x[0])
    coordinates = AffineMap(np.asarray(shift, np.float64), np.asarray(scale, np.float64))
    kernel = InverseMultiquadric(1.0) if kernel is None else kernel
    return SteinKernel(resolve(kernel, coordinates(x, x)[0]), coordinates)


def _deviations(sample: Sample, x: np.ndarray) -> np.ndarray:
    """Compute the mean absolute deviation of each coordinate, (dim,)."""
    check_moves(sample)
    return np.abs(x - x.mean(axis=0)).mean(axis=0)


def _check(sample: Any, kernel: object) -> None:
    """Raise an error for samples and kernels that a discrepancy is not defined for."""
    if isinstance(sample, Stream):
        raise TypeError(
            "every pair of draws is needed, so all draws must be in memory: give a Sample, perhaps of every "
            "tenth draw."
        )
    check_sample(sample)
    if sample.space is not None:
        raise NotImplementedError(
            "a discrepancy ignores the boundary of a space: give draws and scores on the unconstrained "
            "space, in a Sample without a space."
        )
    if not (kernel is None or isinstance(kernel, AbstractKernel)):
        raise TypeError(
            f"the kernel is {kernel!r}: give one of steinax.kernels, such as InverseMultiquadric(1.0)."
        )


BLOCK = 1000  # rows and columns of the kernel matrix in memory at a time


def ksd(
    sample: Sample,
    kernel: AbstractKernel | None = None,
    weights: ArrayLike | None = None,
    *,
    like: Sample | None = None,
    standardise: bool | AffineMap = True,
    unbiased: bool = False,
) -> float:
    r"""Compute the kernel Stein discrepancy between a sample and the target of its scores.

    $$ D = \Bigl(\sum_{i,j} w_i w_j\, k_0(x_i, x_j)\Bigr)^{1/2}, \qquad \sum_i w_i = 1 , $$

    is the largest error of the weighted average of any function in the unit ball of the Stein kernel's
    space. It is about $\sqrt{E\, k_0(x, x) / n}$ for $n$ independent draws of the target, and stays away from
    zero where draws are not of the target. Of the target only the scores are needed. All pairs are summed, in
    blocks: time grows as $n^2$, memory as $n$.

    Args:
        sample: the draws $x_i$ and their scores. Its importance weights are $w_i$, if it has any.
        kernel: $k$; the inverse multiquadric $(1 + \|x - y\|^2)^{-1/2}$ by default.
        weights: $w_i$ up to a factor, of any sign, one for each draw, in place of the sample's.
        like: the sample whose spread sets the scale of coordinates and heuristic length-scales; this one by
            default. Discrepancies are comparable only if it is the same for all of them.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map to other
            coordinates, such as `steinax.data.standardise(sample.x)`, in which they are uncorrelated.
        unbiased: leave out the pairs $i = j$ and divide by $1 - \sum_i w_i^2$. For independent draws
            the square is then unbiased, and may be negative: the result has its sign.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> round(sx.ksd(sx.Sample(x, -x)), 3), round(sx.ksd(sx.Sample(x, 1 - x)), 3)
    (0.045, 0.801)
    """
    with precision(np.float64), progress("summing over all pairs of draws"):
        stein = stein_kernel(sample if like is None else like, kernel, standardise)
        if stein.coordinates.shift.shape != (sample.dim,):
            raise ValueError(
                f"`like` has {stein.coordinates.shift.shape[0]} dimensions and the sample {sample.dim}: give "
                "samples of one target."
            )
        w = _normalised(sample, weights)
        total, diagonal = _quadratic(stein, sample, w)
    if not unbiased:
        return float(np.sqrt(max(total, 0.0)))
    if sample.size == 1:
        raise ValueError("one draw has no pairs: give two or more, or omit `unbiased`.")
    square = (total - diagonal) / (1 - float(w @ w))
    return float(np.sign(square) * np.sqrt(abs(square)))


def _normalised(sample: Sample, weights: ArrayLike | None) -> np.ndarray:
    """Return the weights of the draws, divided by their sum, (n,)."""
    given = sample.weights if weights is None else as_reals(weights, "weights")
    w = np.ones(sample.size) if given is None else np.asarray(given, np.float64).reshape(-1)
    if w.shape != (sample.size,) or not np.isfinite(w).all() or w.sum() <= 0:
        raise ValueError(
            f"{w.size} weights for {sample.size} draws: give one finite number for each draw, whose sum is "
            "positive."
        )
    return w / w.sum()


def _quadratic(stein: SteinKernel, sample: Sample, w: np.ndarray) -> tuple[float, float]:
    """Sum $w_i w_j k_0(x_i, x_j)$ over all pairs, and over the pairs $i = j$."""
    rows = min(BLOCK, sample.size)
    blocks = -(-sample.size // rows)
    padded = [
        jnp.pad(array, [(0, blocks * rows - sample.size)] + [(0, 0)] * (array.ndim - 1))
        for array in (*stein.scored(sample), jnp.asarray(w))
    ]
    cut = [tuple(array[i * rows : (i + 1) * rows] for array in padded) for i in range(blocks)]
    # each pair of blocks once: the matrix is symmetric
    sums = [
        (1 if i == j else 2) * _block_sum(stein, cut[i], cut[j])
        for i in range(blocks)
        for j in range(i + 1)
    ]
    return float(sum(map(float, sums))), float(
        sum(float(_diagonal_sum(stein, block)) for block in cut)
    )


@eqx.filter_jit
def _block_sum(stein: SteinKernel, left: tuple, right: tuple) -> jax.Array:
    """Sum $w_i w_j k_0(x_i, x_j)$ over two blocks of draws."""
    return left[2] @ stein.matrix(*left[:2], *right[:2]) @ right[2]


@eqx.filter_jit
def _diagonal_sum(stein: SteinKernel, block: tuple) -> jax.Array:
    """Sum $w_i^2 k_0(x_i, x_i)$ over a block of draws."""
    x, score, w = block
    return jnp.sum(w**2 * stein.diagonal(x, score))


TIE = 1e-12  # relative tolerance: copies of a draw differ by rounding, and the first is chosen


@eqx.filter_jit
def select(stein: SteinKernel, x: Points, score: Points, m: int) -> tuple[jax.Array, jax.Array]:
    r"""Choose m draws greedily: their indices, and the discrepancy of the first, the first two, ... of them.

    With $j_1, \dots, j_t$ chosen, the next is the draw $i$ with the least

    $$ k_0(x_i, x_i) + 2 \sum_{s \le t} k_0(x_i, x_{j_s}) , $$

    its contribution to the sum over all pairs. The sums are updated: a step costs n values of $k_0$.
    """
    diagonal = stein.diagonal(x, score)

    def step(carry: tuple[jax.Array, jax.Array], count: jax.Array) -> tuple:
        added, square = carry
        least = jnp.argmin(added)
        tolerance = TIE * (jnp.abs(added[least]) + diagonal[least])
        chosen = jnp.argmax(added <= added[least] + tolerance)
        square = square + added[chosen]
        added = added + 2 * stein.to(x, score, x[chosen], score[chosen])
        return (added, square), (chosen, jnp.sqrt(jnp.maximum(square, 0.0)) / count)

    start = (diagonal, jnp.zeros((), diagonal.dtype))
    return jax.lax.scan(step, start, jnp.arange(1.0, m + 1))[1]


NUGGETS = 10.0 ** np.arange(-12, 0, 2)  # relative to the mean of the diagonal, tried in order


def regularised_cholesky(matrix: AnyArray) -> np.ndarray:
    """Compute the lower Cholesky factor of a kernel matrix plus the smallest nugget that works."""
    matrix = np.asarray(matrix, np.float64)
    unit = np.diag(matrix).mean() * np.eye(len(matrix))
    for nugget in NUGGETS:
        try:
            return np.linalg.cholesky(matrix + nugget * unit)
        except np.linalg.LinAlgError:
            continue
    raise ValueError(
        "the Stein kernel's matrix on the thinned draws is not positive definite: check the scores with "
        "audit(sample)."
    )


def solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve a linear system by its Cholesky factor, for right-hand sides (n, k)."""
    return solve_triangular(factor, solve_triangular(factor, right), transposed=True)


def least_weights(factor: np.ndarray, nonnegative: bool) -> np.ndarray:
    r"""Compute weights of sum 1 that minimise $w^\top K w$, $K^{-1} 1 / 1^\top K^{-1} 1$ if signs are free.

    Non-negative weights are the minimiser of $v^\top K v / 2 - 1^\top v$ over $v \ge 0$, divided by its
    sum: non-negative least squares with the transposed factor.
    """
    ones = np.ones((len(factor), 1))
    if nonnegative:
        from scipy.optimize import nnls  # installed: jax needs SciPy

        right = solve_triangular(factor, ones)[:, 0]
        v = nnls(factor.T, right, maxiter=100 * len(factor))[0]
    else:
        v = solve(factor, ones)[:, 0]
    return v / v.sum()


def thinned_rows(sample: Sample, places: np.ndarray) -> Sample:
    """Select the draws with these indices in `sample.x`, with all of their data, as one chain."""
    chain, draw = np.divmod(places, sample.length)
    return Sample(
        sample.draws[chain, draw],
        sample.scores[chain, draw],
        sample.names,
        sample.dtype,
        None if sample.diverging is None else sample.diverging[chain, draw],
        None if sample.variables is None else _select_variables(sample.variables, chain, draw),
        log_density=None if sample.log_density is None else sample.log_density[chain, draw],
        verified=sample.verified,
    )


def _select_variables(variables: Variables, chain: np.ndarray, draw: np.ndarray) -> Variables:
    """Select draws of a model's variables lazily, as one chain."""
    import xarray

    at = {
        "chain": xarray.DataArray(chain, dims="draw"),
        "draw": xarray.DataArray(draw, dims="draw"),
    }
    groups = {
        path: node.dataset.drop_vars(["chain", "draw"], errors="ignore")
        .isel(at)
        .expand_dims("chain")
        for path, node in variables.tree.subtree_with_keys
        if {"chain", "draw"} <= set(node.dataset.dims)
    }
    return Variables(xarray.DataTree.from_dict(groups))


ENTRIES = 2**20  # entries of the kernel matrix in memory at a time


def translates(
    stein: SteinKernel, x: Points, score: Points, centres: AnyArray, coef: Coefficients
) -> np.ndarray:
    r"""Evaluate $\sum_j \theta_j k_0(\cdot, x_j)$ on all draws, (n, k), in blocks of rows.

    Args:
        stein: the kernel $k_0$.
        x: all draws, in its coordinates.
        score: the scores of the draws.
        centres: the indices of $x_j$ among the draws.
        coef: the coefficients $\theta$, (p, k).
    """
    n = len(x)
    rows = min(max(ENTRIES // len(centres), 1), n)
    blocks = -(-n // rows)
    spare = ((0, blocks * rows - n), (0, 0))  # blocks of one shape are compiled once
    padded = (jnp.pad(array, spare).reshape(blocks, rows, -1) for array in (x, score))
    y, score_y, coef = x[centres], score[centres], jnp.asarray(coef)
    values = [
        _translates_of_block(stein, rows_x, rows_score, y, score_y, coef)
        for rows_x, rows_score in zip(*padded, strict=True)
    ]
    return np.concatenate([np.asarray(block) for block in values])[:n]


@eqx.filter_jit
def _translates_of_block(
    stein: SteinKernel, x: AnyArray, score: AnyArray, y: AnyArray, score_y: AnyArray, coef: AnyArray
) -> jax.Array:
    """Evaluate combinations of translates on one block of draws."""
    return stein.matrix(x, score, y, score_y) @ coef


@dataclass(frozen=True)
class Thinned:
    r"""A few representative draws of a sample, and their weights.

    Attributes:
        indices: the indices of the chosen draws in `sample.x`, in the order of choice, (m,).
        ksd: the discrepancy of the first, the first two, ... of them, with equal weights, (m,).
        weights: the weights of the chosen draws with the least discrepancy, (m,); they sum to 1.
        whole: the sample they were chosen from.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> thinned = sx.thin(sx.Sample(x, -x), 20)
    >>> thinned.sample
    Sample(1 chain x 20 draws, 2 dimensions: x[0], x[1])
    """

    references: ClassVar[tuple[str, ...]] = ("riabiz2022optimal",)
    indices: np.ndarray
    ksd: np.ndarray
    weights: np.ndarray
    whole: Sample
    stein: SteinKernel = field(repr=False)
    factor: np.ndarray = field(
        repr=False
    )  # Cholesky factor of the kernel matrix of the distinct draws

    @cached_property
    def sample(self) -> Sample:
        """The chosen draws as a sample of one chain, in the order of choice."""
        return thinned_rows(self.whole, self.indices)

    @property
    def weighted_ksd(self) -> float:
        """The discrepancy of the chosen draws with their weights."""
        distinct = np.bincount(np.unique(self.indices, return_inverse=True)[1], self.weights)
        return float(np.linalg.norm(self.factor.T @ distinct))

    def average(self, f: IntegrandSpec | Integrands) -> np.ndarray:
        r"""Compute the weighted averages $\sum_j w_j f(x_j)$, (k,), evaluating f on the chosen draws alone.

        This is for expensive functions. There is no standard error: the draws were chosen, not sampled, and
        none of them is held out. `estimate` has one.

        Args:
            f: a name, a function of one draw, a dict of these, or values on the chosen draws.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> bool(np.all(np.abs(sx.thin(sx.Sample(x, -x), 20).average("x")) < 0.1))
        True
        """
        values = np.asarray(integrands(f, self.sample).values)[0]
        return self.weights @ values

    def estimate(self, f: IntegrandSpec | Integrands, *, audit: AuditMode = "raise") -> Estimate:
        r"""Estimate the expectations of f from all draws, with a control functional of the chosen ones.

        The control functional is $g = \sum_j a_j k_0(\cdot, x_j)$ with $c + g = f$ on the chosen
        draws; $c$ is the result of `average` if weights may be negative. The estimate is the mean of $f - g$
        over the draws that were *not* chosen, with the standard error of this mean. Where that is larger
        than the plain one, the result is the plain average.

        Args:
            f: as for `steinax.estimate`; evaluated on all draws.
            audit: what to do if the scores are not those of the draws.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.thin(sx.Sample(x, -x), 50).estimate("x")
        >>> bool(est.worth.min() > 3)
        True
        """
        _check_others(self)
        whole = self.whole.with_training()
        wanted, report = integrands(f, whole), audited(whole, audit)
        series = _held_out(self, np.asarray(wanted.values, np.float64))
        plain = chain_statistics(wanted.values)
        controlled = controlled_statistics(series, wanted.values, np.zeros(1))
        worse = controlled.mcse > plain.mcse
        best = jax.tree.map(lambda a, b: np.where(worse, b, a), controlled, plain)
        count = np.unique(self.indices).size
        label = f"{describe(KernelTranslates(self.stein.kernel))} of {count} thinned draws"
        chosen = tuple(PLAIN if is_worse else label for is_worse in worse)
        note = (
            f"fitted to {count} thinned draws, averaged over the {self.whole.size - count} others"
        )
        papers = references_of(self, KernelTranslates(self.stein.kernel))
        result = from_statistics(best, plain, wanted.names, chosen, note, references=papers)
        return with_audit(result, report, audit)

    def __repr__(self) -> str:
        discrepancies = f"ksd {self.ksd[-1]:.3g}, weighted {self.weighted_ksd:.3g}"
        return f"Thinned({len(self.indices)} of {self.whole.size} draws, {discrepancies})"


def _held_out(thinned: Thinned, values: np.ndarray) -> np.ndarray:
    """Compute the series f - g so that its mean excludes the draws that g was fitted to: (chain, draw, k).

    The fitted draws get the mean of the others, whose deviations are enlarged to compensate for their
    smaller number: mean and standard error are those of the others, and chains stay complete.
    """
    f = values.reshape(thinned.whole.size, -1)
    fitted, first = np.unique(thinned.indices, return_index=True)
    ones = solve(thinned.factor, np.ones((len(fitted), 1)))
    solution = solve(thinned.factor, f[fitted])
    coef = np.zeros((len(thinned.indices), f.shape[1]))  # zero for copies
    coef[first] = solution - ones * (solution.sum(axis=0) / ones.sum())
    with precision(np.float64):
        x, score = thinned.stein.scored(thinned.whole)
        residual = f - translates(thinned.stein, x, score, thinned.indices, coef)
    others = np.ones(len(f), bool)
    others[fitted] = False
    mean = residual[others].mean(axis=0)
    factor = len(f) / others.sum()
    return np.where(others[:, None], mean + factor * (residual - mean), mean).reshape(values.shape)


def _check_others(thinned: Thinned) -> None:
    """Raise an error if too few draws remain to average over, or if they have weights."""
    size = thinned.whole.size
    if 2 * np.unique(thinned.indices).size > size:
        raise ValueError(
            f"{np.unique(thinned.indices).size} of {size} draws are chosen, and too few remain to average "
            "over: choose at most half, or use average(f)."
        )
    if thinned.whole.weights is not None:
        raise NotImplementedError(
            "the draws have importance weights: use average(f), which does not need them."
        )


def thin(
    sample: Sample,
    m: int,
    kernel: AbstractKernel | None = None,
    *,
    standardise: bool | AffineMap = True,
    nonnegative: bool = False,
) -> Thinned:
    r"""Choose m representative draws by Stein thinning (Riabiz et al., 2022).

    Draws are chosen one by one, each to minimise the discrepancy `ksd` of those chosen so far; a draw may be
    chosen again. The scores tell where the target is, so draws of a warm-up or of a slightly wrong chain are
    avoided. The cost is $n m$ values of the kernel, and $n$ numbers of memory.

    The chosen draws also get weights, which minimise

    $$ w^\top K_0 w, \qquad \sum_j w_j = 1 . $$

    Args:
        sample: the draws and scores to choose from. Importance weights do not matter: scores do.
        m: the number of draws to choose.
        kernel: $k$; the inverse multiquadric $(1 + \|x - y\|^2)^{-1/2}$ by default.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map to other
            coordinates, such as `steinax.data.standardise(sample.x)`, in which they are uncorrelated.
        nonnegative: whether weights must not be negative, at the cost of a larger discrepancy.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> thinned = sx.thin(sx.Sample(x, -x), 20)
    >>> thinned
    Thinned(20 of 1000 draws, ksd 0.187, weighted 0.172)
    >>> thinned.average("x").shape
    (2,)
    """
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise ValueError(f"m={m!r} draws: give a whole number of at least 1.")
    if m > sample.size:
        raise ValueError(f"m={m} draws of {sample.size}: give a smaller number.")
    with precision(np.float64), progress("choosing draws"):
        stein = stein_kernel(sample, kernel, standardise)
        x, score = stein.scored(sample)
        chosen, discrepancy = (np.asarray(array) for array in select(stein, x, score, int(m)))
        matrix = np.asarray(_matrix(stein, x[chosen], score[chosen]))
    _, first, inverse, copies = np.unique(
        chosen, return_index=True, return_inverse=True, return_counts=True
    )
    factor = regularised_cholesky(matrix[np.ix_(first, first)])
    weights = least_weights(factor, nonnegative)
    shared = (weights / copies)[inverse]  # copies share the weight of a draw
    return Thinned(chosen, discrepancy, shared, sample, stein, factor)


@eqx.filter_jit
def _matrix(stein: SteinKernel, x: Points, score: Points) -> jax.Array:
    """Compute the kernel matrix of draws with themselves."""
    return stein.matrix(x, score, x, score)
