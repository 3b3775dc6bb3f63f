from dataclasses import dataclass, field
from functools import cached_property

import jax
import numpy as np

from .._precision import precision
from .._show import describe
from ..chains import chain_statistics, controlled_statistics
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..estimation import AuditMode, Estimate
from ..estimation._audited import audited, with_audit
from ..estimation._result import beside
from ..families import KernelTranslates
from ._interpolant import solve
from ._parts import some_draws
from ._stein_kernel import SteinKernel
from ._translates import translates


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
        return with_audit(beside(better, plain, wanted.names, chosen, note), report, audit)

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
