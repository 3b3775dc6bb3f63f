"""Thinning: draws chosen by a Stein kernel."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._linalg import solve_triangular
from .._precision import precision
from .._progress import progress
from .._show import describe
from .._types import AnyArray, Coefficients, Points
from ..chains import chain_statistics, controlled_statistics
from ..citing import references_of
from ..data import AffineMap, Integrands, Sample, Variables, integrands
from ..data._integrands import IntegrandSpec
from ..estimation import AuditMode, Estimate
from ..estimation._audited import audited, with_audit
from ..estimation._result import beside
from ..families import KernelTranslates
from ..kernels import AbstractKernel
from ._discrepancy import SteinKernel, stein_kernel

TIE = 1e-12  # relative: copies of a draw are equal but for rounding, and the first is meant


@eqx.filter_jit
def select(stein: SteinKernel, x: Points, score: Points, m: int) -> tuple[jax.Array, jax.Array]:
    r"""The places of m draws, and the discrepancy of the first, the first two, ... of them.

    With $j_1, \dots, j_t$ chosen, the next is the draw $i$ with the least

    $$ k_0(x_i, x_i) + 2 \sum_{s \le t} k_0(x_i, x_{j_s}) , $$

    which is what it adds to the sum over all pairs. The sums are kept: a step costs n values of $k_0$.
    """
    own = stein.own(x, score)

    def step(carry: tuple[jax.Array, jax.Array], count: jax.Array) -> tuple:
        added, square = carry
        least = jnp.argmin(added)
        room = TIE * (jnp.abs(added[least]) + own[least])
        chosen = jnp.argmax(added <= added[least] + room)
        square = square + added[chosen]
        added = added + 2 * stein.to(x, score, x[chosen], score[chosen])
        return (added, square), (chosen, jnp.sqrt(jnp.maximum(square, 0.0)) / count)

    return jax.lax.scan(step, (own, jnp.zeros((), own.dtype)), jnp.arange(1.0, m + 1))[1]


NUGGETS = 10.0 ** np.arange(-12, 0, 2)  # of the mean of the diagonal, the first that does


def root(matrix: AnyArray) -> np.ndarray:
    """The lower Cholesky factor of a kernel matrix, and of no more of the identity than it needs."""
    matrix = np.asarray(matrix, np.float64)
    unit = np.diag(matrix).mean() * np.eye(len(matrix))
    for nugget in NUGGETS:
        try:
            return np.linalg.cholesky(matrix + nugget * unit)
        except np.linalg.LinAlgError:
            continue
    raise ValueError(
        "the Stein kernel's matrix on the thinned draws is not positive: look at the scores, with "
        "audit(sample)."
    )


def solve(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a system by its Cholesky factor, for right sides (n, k)."""
    return solve_triangular(factor, solve_triangular(factor, right), transposed=True)


def least_weights(factor: np.ndarray, nonnegative: bool) -> np.ndarray:
    r"""The weights of sum 1 with the least $w^\top K w$, $K^{-1} 1 / 1^\top K^{-1} 1$ if signs are free.

    Without negative ones they are the minimum of $v^\top K v / 2 - 1^\top v$ over $v \ge 0$, divided by
    its sum: non-negative least squares with the transposed factor.
    """
    ones = np.ones((len(factor), 1))
    if nonnegative:
        from scipy.optimize import nnls  # jax needs SciPy, so it is there

        right = solve_triangular(factor, ones)[:, 0]
        v = nnls(factor.T, right, maxiter=100 * len(factor))[0]
    else:
        v = solve(factor, ones)[:, 0]
    return v / v.sum()


def some_draws(sample: Sample, places: np.ndarray) -> Sample:
    """The draws in these places of `sample.x`, with all that belongs to them, as one chain."""
    chain, draw = np.divmod(places, sample.length)
    return Sample(
        sample.draws[chain, draw],
        sample.scores[chain, draw],
        sample.names,
        sample.dtype,
        None if sample.diverging is None else sample.diverging[chain, draw],
        None if sample.variables is None else _some(sample.variables, chain, draw),
        log_density=None if sample.log_density is None else sample.log_density[chain, draw],
        verified=sample.verified,
    )


def _some(variables: Variables, chain: np.ndarray, draw: np.ndarray) -> Variables:
    """The same of a model's variables, which are not read until they are asked for."""
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


ENTRIES = 2**20  # of the kernel matrix that are in memory at a time


def translates(
    stein: SteinKernel, x: Points, score: Points, centres: AnyArray, coef: Coefficients
) -> np.ndarray:
    r"""The functions $\sum_j \theta_j k_0(\cdot, x_j)$ on all draws, (n, k), some rows at a time.

    Args:
        stein: the kernel $k_0$.
        x: all draws, in its coordinates.
        score: and their scores.
        centres: the places of $x_j$ among them.
        coef: the coefficients $\theta$, (p, k).
    """
    n = len(x)
    rows = min(max(ENTRIES // len(centres), 1), n)
    blocks = -(-n // rows)
    spare = ((0, blocks * rows - n), (0, 0))  # blocks of one shape are compiled once
    parts = (jnp.pad(one, spare).reshape(blocks, rows, -1) for one in (x, score))
    y, score_y, coef = x[centres], score[centres], jnp.asarray(coef)
    found = [
        _block(stein, rows_x, rows_score, y, score_y, coef)
        for rows_x, rows_score in zip(*parts, strict=True)
    ]
    return np.concatenate([np.asarray(one) for one in found])[:n]


@eqx.filter_jit
def _block(
    stein: SteinKernel, x: AnyArray, score: AnyArray, y: AnyArray, score_y: AnyArray, coef: AnyArray
) -> jax.Array:
    return stein.matrix(x, score, y, score_y) @ coef


@dataclass(frozen=True)
class Thinned:
    r"""A few draws that stand for all of a sample, and their weights.

    Attributes:
        indices: the places of the chosen draws in `sample.x`, in the order of choice, (m,).
        ksd: the discrepancy of the first, the first two, ... of them, with equal weights, (m,).
        weights: those of least discrepancy, (m,); they sum to 1.
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
    factor: np.ndarray = field(repr=False)  # of the kernel matrix of the draws, each once

    @cached_property
    def sample(self) -> Sample:
        """The chosen draws as a sample of one chain, in the order of choice."""
        return some_draws(self.whole, self.indices)

    @property
    def weighted_ksd(self) -> float:
        """The discrepancy of the chosen draws with their weights."""
        each = np.bincount(np.unique(self.indices, return_inverse=True)[1], self.weights)
        return float(np.linalg.norm(self.factor.T @ each))

    def average(self, f: IntegrandSpec | Integrands) -> np.ndarray:
        r"""The weighted averages $\sum_j w_j f(x_j)$, (k,): f is evaluated on the chosen draws alone.

        For functions that cost much. There is no standard error: the draws were chosen, not drawn, and
        none of them is left to try the answer on. `estimate` has one.

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
        r"""The expectations of f, from all draws, with a control functional of the chosen ones.

        It is $g = \sum_j a_j k_0(\cdot, x_j)$ with $c + g = f$ on the chosen draws; $c$ is what `average`
        gives where weights may be negative. The mean of $f - g$ over the draws that were *not* chosen is the
        estimate, and its standard error is that of this mean. Where it is larger than the plain one,
        the plain average is given.

        Args:
            f: as for `steinax.estimate`: it is evaluated on all draws.
            audit: what to do if the scores are not those of the draws.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.thin(sx.Sample(x, -x), 50).estimate("x")
        >>> bool(est.worth.min() > 3)
        True
        """
        _check_rest(self)
        wanted, report = integrands(f, self.whole), audited(self.whole, audit)
        series = _held_out(self, np.asarray(wanted.values, np.float64))
        plain = chain_statistics(wanted.values)
        better = controlled_statistics(series, wanted.values, np.zeros(1))
        worse = better.mcse > plain.mcse
        better = jax.tree.map(lambda a, b: np.where(worse, b, a), better, plain)
        count = np.unique(self.indices).size
        ours = f"{describe(KernelTranslates(self.stein.kernel))} of {count} thinned draws"
        chosen = tuple("plain Monte Carlo" if one else ours for one in worse)
        note = (
            f"fitted to {count} thinned draws, averaged over the {self.whole.size - count} others"
        )
        papers = references_of(self, KernelTranslates(self.stein.kernel))
        made = beside(better, plain, wanted.names, chosen, note, references=papers)
        return with_audit(made, report, audit)

    def __repr__(self) -> str:
        found = f"ksd {self.ksd[-1]:.3g}, weighted {self.weighted_ksd:.3g}"
        return f"Thinned({len(self.indices)} of {self.whole.size} draws, {found})"


def _held_out(thinned: Thinned, values: np.ndarray) -> np.ndarray:
    """The series f - g, with the draws that g was fitted to left out of its mean: (chain, draw, k).

    They are given the mean of the others, and the deviations of these are as much larger as there are
    fewer of them: mean and standard error are those of the others, and chains stay whole.
    """
    f = values.reshape(thinned.whole.size, -1)
    once, first = np.unique(thinned.indices, return_index=True)
    ones, inside = solve(thinned.factor, np.ones((len(once), 1))), solve(thinned.factor, f[once])
    coef = np.zeros((len(thinned.indices), f.shape[1]))  # copies get none
    coef[first] = inside - ones * (inside.sum(axis=0) / ones.sum())
    with precision(np.float64):
        x, score = thinned.stein.scored(thinned.whole)
        rest = f - translates(thinned.stein, x, score, thinned.indices, coef)
    others = np.ones(len(f), bool)
    others[once] = False
    mean = rest[others].mean(axis=0)
    larger = len(f) / others.sum()
    return np.where(others[:, None], mean + larger * (rest - mean), mean).reshape(values.shape)


def _check_rest(thinned: Thinned) -> None:
    size = thinned.whole.size
    if 2 * np.unique(thinned.indices).size > size:
        raise ValueError(
            f"{np.unique(thinned.indices).size} of {size} draws are chosen, and too few are left to average "
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
    r"""Choose m draws that stand for all: Stein thinning (Riabiz et al., 2022).

    One after the other, the draw is chosen that makes the discrepancy `ksd` of those chosen least; a
    draw may be chosen again. The scores say where the target is, so draws of a warm-up or of a chain that is
    slightly wrong are passed over. Cost: $n m$ values of the kernel, and $n$ numbers of memory.

    The chosen draws get weights as well, those with the least

    $$ w^\top K_0 w, \qquad \sum_j w_j = 1 . $$

    Args:
        sample: the draws and scores to choose from. Importance weights do not matter: scores do.
        m: how many to choose.
        kernel: $k$; the inverse multiquadric $(1 + \|x - y\|^2)^{-1/2}$ by default.
        standardise: whether to divide each coordinate by its mean absolute deviation; or a map to other
            coordinates, such as `steinax.data.standardise(sample.x)`, in which none are correlated.
        nonnegative: whether to allow no negative weights, at the price of a larger discrepancy.

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
    with precision(np.float64), progress("choosing draws"):
        stein = stein_kernel(sample, kernel, standardise)
        x, score = stein.scored(sample)
        chosen, discrepancy = (np.asarray(one) for one in select(stein, x, score, int(m)))
        matrix = np.asarray(_matrix(stein, x[chosen], score[chosen]))
    _, first, place, copies = np.unique(
        chosen, return_index=True, return_inverse=True, return_counts=True
    )
    factor = root(matrix[np.ix_(first, first)])
    weights = least_weights(factor, nonnegative)
    each = (weights / copies)[place]  # what a draw gets is shared by its copies
    return Thinned(chosen, discrepancy, each, sample, stein, factor)


@eqx.filter_jit
def _matrix(stein: SteinKernel, x: Points, score: Points) -> jax.Array:
    return stein.matrix(x, score, x, score)
