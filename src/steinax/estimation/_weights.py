from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from .._precision import precision
from .._types import AnyArray, Key, Series
from ..auditing import AuditReport
from ..chains import ChainStatistics, chain_statistics, controlled_statistics, linearised
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..fitting import random_key
from ..solvers import Folds
from ..solvers._linear_map import AbstractLinearMap
from ._functionals import SURE, Quantiles, ratio, standard_deviation, systematic
from ._result import Estimate, beside
from ._stability import instability

if TYPE_CHECKING:
    import xarray


class Resampled(NamedTuple):
    """Draws of equal weight, and where each of them stood."""

    draws: np.ndarray  # (n, dim)
    chain: np.ndarray  # (n,)
    draw: np.ndarray  # (n,)


class WeightedDraws(eqx.Module):
    r"""Draws with weights: one fit for means, standard deviations, ratios and quantiles.

    A control variate from a linear family is linear in $f$, and so is the average of what it
    leaves. The estimate is therefore a weighted average of $f$ itself,

    $$ \frac1n \sum_i f(x_i) - g_{-i}(x_i) = \sum_i w_i f(x_i), \qquad \sum_i w_i = 1, $$

    with weights $w$ that know the draws and their scores, but not $f$. Some may be negative.

    Every method gives an `Estimate`. Its standard errors are not made from the weights, which say
    nothing of them, but from the series that the control variate leaves of $f$.

    Attributes:
        weights: $w$, (chain, draw).
        sample: the draws and scores.
        fitted: the map from $f$ to what is left of it on held-out draws, factorised; it can take as
            much memory as draws times draws.
        audit: whether the scores are those of the draws; None if nobody looked.
        folds: where each starts and stops among all draws.
        chosen: the control variate.
        note: how it was fitted and used.

    >>> import numpy as np, steinax as sx
    >>> x = 3 + np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> draws = sx.weigh(sx.Sample(x, 3 - x), sx.Polynomial(2))
    >>> draws
    WeightedDraws(4 chains x 250 draws, Polynomial(2), 8 folds, ...)
    >>> np.allclose(np.tensordot(draws.weights, x), 3.0)
    True
    >>> np.allclose(draws.sd("x").value, 1.0)
    True
    """

    weights: Float[AnyArray, "chain draw"]
    sample: Sample
    fitted: AbstractLinearMap
    audit: AuditReport | None
    folds: Folds = eqx.field(static=True)
    chosen: str = eqx.field(static=True)
    note: str = eqx.field(static=True)

    @property
    def negative_mass(self) -> float:
        """The part of the absolute weights that is negative."""
        return float(np.maximum(-self.weights, 0).sum() / np.abs(self.weights).sum())

    def mean(self, f: IntegrandSpec | Integrands) -> Estimate:
        """Expectations, as `estimate` gives them."""
        wanted = integrands(f, self.sample)
        return self._beside(wanted, wanted, "mean")

    def sd(self, f: IntegrandSpec | Integrands) -> Estimate:
        r"""Standard deviations $\sqrt{E f^2 - (E f)^2}$, with errors by the delta method."""
        wanted = integrands(f, self.sample)
        centre, scale = wanted.values.mean(axis=(0, 1)), wanted.values.std(axis=(0, 1))
        z = (wanted.values - centre) / np.where(scale > 0, scale, 1.0)
        both = np.concatenate([z, z**2], axis=-1)
        first, second = np.split(self._statistics(both).mean, 2)
        found, variance = standard_deviation(z, first, second)
        plain, _ = standard_deviation(z, *np.split(self._plain_mean(both), 2))
        spread = self._statistics(variance)
        weak = ~(spread.mean > SURE * spread.mcse)
        why = "the variance of {} under the weights is not clearly above zero"
        ours, usual = (Integrands(one * scale, wanted.names) for one in (found, plain))
        result = self._beside(ours, usual, "standard deviation", weak, why)
        return replace(result, value=np.where(second > first**2, result.value, np.nan))

    def ratio(self, f: IntegrandSpec | Integrands, g: IntegrandSpec | Integrands) -> Estimate:
        r"""Ratios of expectations $E f / E g$, with errors by the delta method.

        Args:
            f: the numerators.
            g: the denominators, as many, or one for all.
        """
        above, below = integrands(f, self.sample), integrands(g, self.sample)
        if len(below.names) not in (1, len(above.names)):
            raise ValueError(
                f"{len(above.names)} numerators and {len(below.names)} denominators: give as many of "
                "both, or one denominator."
            )
        numerator, denominator = self._statistics(above.values), self._statistics(below.values)
        weak = ~(np.abs(denominator.mean) > SURE * denominator.mcse)
        names = below.names * (len(above.names) // len(below.names))
        names = tuple(f"{a} / {b}" for a, b in zip(above.names, names, strict=True))
        ours = ratio(above.values, below.values, numerator.mean, denominator.mean)
        means = (self._plain_mean(f.values) for f in (above, below))
        usual = ratio(above.values, below.values, *means)
        why = "the denominator of {} is not clearly different from zero"
        return self._beside(Integrands(ours, names), Integrands(usual, names), "ratio", weak, why)

    def probability(self, event: IntegrandSpec | Integrands) -> Estimate:
        """Probabilities of events, within 0 and 1.

        An indicator jumps, and no smooth function follows it closely, so expect less of this than of
        means.

        Args:
            event: integrands that are true or false (1 or 0) on every draw.
        """
        wanted = integrands(event, self.sample)
        if not np.isin(wanted.values, (0, 1)).all():
            raise ValueError(
                "an event must be true or false on every draw: give a condition, such as "
                "lambda x: x[0] > 0, or use mean for other functions."
            )
        found = self._beside(wanted, wanted, "probability")
        return replace(found, value=np.clip(found.value, 0, 1))

    def quantile(
        self, f: IntegrandSpec | Integrands, q: float | int | Sequence[float] | AnyArray
    ) -> Estimate:
        r"""Quantiles, by inverting the weighted distribution function.

        Weights may be negative, so the function $F(x) = \sum_i w_i 1\{f_i \le x\}$ is made monotone by
        sorting its values. If $s$ is the standard error of $F$ at the quantile, from what the
        control variate leaves of the indicator, that of the quantile is half the distance between
        the quantiles at $q - s$ and $q + s$, or $s / h$ times that at $q \pm h$ where few draws lie so
        near ($h$ by Hall and Sheather, 1988).

        Args:
            f: the integrands.
            q: levels between 0 and 1, one or many.
        """
        wanted, levels = integrands(f, self.sample), np.atleast_1d(np.asarray(q, dtype=float))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError(
                f"levels {q}: give numbers between 0 and 1, such as [0.05, 0.5, 0.95]."
            )
        ours = Quantiles(wanted.values, self.weights, levels)
        own = np.ones(self.weights.shape) if self.sample.weights is None else self.sample.weights
        plain = Quantiles(wanted.values, own / own.sum(), levels)
        better = self._statistics(ours.indicators())
        errors = ours.error(better.mcse, better.ess)
        better = replace(better, mean=ours.value, mcse=errors, batches=-better.batches)
        usual = chain_statistics(linearised(plain.indicators(), self.sample.weights))
        errors = plain.error(usual.mcse, usual.ess)
        usual = replace(usual, mean=plain.value, mcse=errors, batches=-usual.batches)
        names = tuple(f"{name} {100 * level:g}%" for name in wanted.names for level in levels)
        reason = _reason(np.isnan(better.mcse), names, "too few draws beyond {}")
        return self._assemble(better, usual, names, "quantile", reason)

    def resample(self, n: int, key: Key | None = None) -> Resampled:
        """Draws of equal weight, by systematic resampling, in random order.

        Negative weights count as zero: `negative_mass` says how much that leaves out. So this is a
        little less than what the weights know, and good for pictures and for programs that take no
        weights.

        Args:
            n: how many draws.
            key: for the random numbers; a fixed one by default.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> found = sx.weigh(sx.Sample(x, -x), sx.Polynomial(2)).resample(100)
        >>> bool(np.all(found.draws == x[found.chain, found.draw]))
        True
        """
        first, second = jax.random.split(random_key(key))
        uniform = float(jax.random.uniform(first))
        index = systematic(np.maximum(self.weights.ravel(), 0), n, uniform)
        index = index[np.asarray(jax.random.permutation(second, n))]
        chain, draw = np.unravel_index(index, self.weights.shape)
        return Resampled(self.sample.draws[chain, draw], chain, draw)

    def to_dataset(self) -> "xarray.Dataset":
        """The weights as a labelled array, to be stored among ArviZ's `sample_stats`.

        >>> import arviz_base, numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> tree = arviz_base.from_dict({"posterior": {"x": x}, "sample_stats": {}})
        >>> draws = sx.weigh(sx.Sample(x, -x), sx.Polynomial(2))
        >>> tree["sample_stats"] = tree["sample_stats"].assign(draws.to_dataset())
        >>> mean = (tree["posterior"]["x"] * tree["sample_stats"]["weights"]).sum(("chain", "draw"))
        >>> bool(abs(mean).max() < 1e-10)
        True
        """
        import xarray

        coords = {"chain": np.arange(self.sample.chains), "draw": np.arange(self.sample.length)}
        weights = xarray.DataArray(self.weights, coords, ("chain", "draw"), name="weights")
        return weights.to_dataset().assign_attrs(chosen=self.chosen, note=self.note)

    def __repr__(self) -> str:
        chains = "1 chain" if self.sample.chains == 1 else f"{self.sample.chains} chains"
        return (
            f"WeightedDraws({chains} x {self.sample.length} draws, {self.chosen}, {self.note}, "
            f"{100 * self.negative_mass:.2g}% negative)"
        )

    def _statistics(self, values: Series) -> ChainStatistics:
        """Of what is left of integrands on held-out draws."""
        flat = values.reshape(self.sample.size, -1).astype(self.weights.dtype)
        with precision(self.weights.dtype):
            rest, intercepts = map(np.asarray, self.fitted.rest(flat))
        own = self.sample.weights
        rest = linearised(rest, None if own is None else own.ravel())
        unseen = instability(rest, intercepts, self.folds)
        return controlled_statistics(rest.reshape(values.shape), values, unseen)

    def _plain_mean(self, values: Series) -> np.ndarray:
        return linearised(values, self.sample.weights).mean(axis=(0, 1))

    def _beside(
        self, ours: Integrands, usual: Integrands, kind: str, weak: AnyArray = False, why: str = ""
    ) -> Estimate:
        """Ours with control variates beside the usual; no error where there is no saying.

        Args:
            ours: an integrand whose expectation is wanted, at the estimates with control variates.
            usual: the same at the plain ones.
            kind: what is estimated.
            weak: where an argument is too weak for an error.
            why: what is too weak, with a place for names.
        """
        better = self._statistics(ours.values)
        weak = np.broadcast_to(weak, len(ours.names))
        better = replace(better, mcse=np.where(weak, np.nan, better.mcse))
        plain = chain_statistics(linearised(usual.values, self.sample.weights))
        reason = _reason(weak, ours.names, why)
        return self._assemble(better, plain, ours.names, kind, reason)

    def _assemble(
        self,
        better: ChainStatistics,
        plain: ChainStatistics,
        names: tuple[str, ...],
        kind: str,
        reason: str | None,
    ) -> Estimate:
        chosen, note = (self.chosen,) * len(names), f"{kind}, {self.note}"
        found = beside(better, plain, names, chosen, note, reason=reason)
        return replace(found, audit=self.audit)


def _reason(weak: np.ndarray, names: tuple[str, ...], why: str) -> str | None:
    if not weak.any():
        return None
    which = ", ".join(name for name, bad in zip(names, weak, strict=True) if bad)
    return f"{why.format(which)}: use more draws"
