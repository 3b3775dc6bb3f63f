"""Weighted draws, whose weighted averages are estimates with control variates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from .._numerics import few_threads, precision
from .._show import counted, describe, progress
from .._types import AnyArray, Key, Series
from ..auditing import AuditMode, AuditReport, audited
from ..chains import ChainStatistics, chain_statistics, controlled_statistics, linearised
from ..citing import references_of
from ..data import (
    Integrands,
    IntegrandSpec,
    Sample,
    Stream,
    check_sample,
    integrands,
    space_family,
)
from ..families import AbstractFamily, AbstractLinearFamily
from ..objectives import AbstractPenalty
from ..solvers import CrossFitted, Exact, prepare, random_key
from ._blocks import no_integrands
from ._estimate import noted, with_audit
from ._kinks import continuous, crossings, densities
from ._quantiles import Quantiles, levels_of, narrowest
from ._result import Estimate, from_statistics
from ._search import for_all
from ._splits import CrossFit, with_moves

if TYPE_CHECKING:
    import xarray


SURE = 3.0  # standard errors: how far from zero a variance or a denominator must be


def standard_deviation(f: Series, first: AnyArray, second: AnyArray) -> tuple[Series, Series]:
    r"""Linearise the standard deviation of f: return an integrand for it, and one for the variance.

    With $m_1, m_2$ the expectations of $f$ and $f^2$, and $\sigma^2 = m_2 - m_1^2$, the expectation of
    $\sigma + (f^2 - m_2 - 2 m_1 (f - m_1)) / 2 \sigma$ is $\sigma$, with its error to first order.
    If $\sigma^2$ is not positive, $\sigma = 1$ is used, and the result is meaningless.

    Args:
        f: the values, (chain, draw, k).
        first: $m_1$, (k,).
        second: $m_2$, (k,).
    """
    variance = second - first**2
    sigma = np.sqrt(np.where(variance > 0, variance, 1.0))
    moved = f**2 - second - 2 * first * (f - first)
    return sigma + moved / (2 * sigma), variance + moved


def ratio(above: Series, below: AnyArray, top: AnyArray, bottom: AnyArray) -> Series:
    r"""Linearise a ratio of expectations: return an integrand whose expectation is the ratio.

    With expectations $m_f, m_g$ and $\rho = m_f / m_g$, it is $\rho + (f - m_f - \rho\, (g - m_g)) / m_g$.
    If $m_g$ is zero, one is used instead, and the result is meaningless.

    Args:
        above: the values of f, (chain, draw, k).
        below: the values of g, as many or one.
        top: $m_f$, (k,).
        bottom: $m_g$.
    """
    denominator = np.where(bottom == 0, 1.0, bottom)
    value = top / denominator
    return value + (above - top - value * (below - bottom)) / denominator


DISCRETE = "quantiles of discrete variables ({}) have none"
HDI = "the ends of a narrowest interval have none; quantiles do, by quantile(f, levels)"


def systematic(weights: np.ndarray, count: int, uniform: float) -> np.ndarray:
    """Resample systematically: each draw as often as its weight implies, rounded up or down.

    Args:
        weights: non-negative weights of the draws, (n,).
        count: the number of indices to return.
        uniform: a random number from 0 to 1.
    """
    total = np.cumsum(weights)
    places = (np.arange(count) + uniform) / count * total[-1]
    return np.minimum(np.searchsorted(total, places, side="right"), len(weights) - 1)


class Resampled(NamedTuple):
    """Draws of equal weight, with the chain and draw index of each."""

    draws: np.ndarray  # (n, dim)
    chain: np.ndarray  # (n,)
    draw: np.ndarray  # (n,)


class WeightedDraws(eqx.Module):
    r"""Weighted draws: one fit for means, standard deviations, ratios and quantiles.

    A control variate from a linear family is linear in $f$, and so is the average of its residuals.
    The estimate is therefore a weighted average of $f$ itself,

    $$ \frac1n \sum_i f(x_i) - g_{-i}(x_i) = \sum_i w_i f(x_i), \qquad \sum_i w_i = 1, $$

    with weights $w$ that depend on the draws and their scores, but not on $f$. Some may be negative.

    Every method returns an `Estimate`. Its standard errors cannot be computed from the weights: they
    are computed from the residuals for each $f$.

    Attributes:
        weights: $w$, (chain, draw).
        sample: the draws and scores.
        fitted: the factorised cross-fit, which may need a matrix over all pairs of draws.
        audit: the audit of the draws and scores; None if there was none.
        chosen: the control variate.
        note: how it was fitted and used.
        references: the keys of the papers behind the method, for `citations`.

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
    fitted: CrossFitted
    audit: AuditReport | None
    chosen: str = eqx.field(static=True)
    note: str = eqx.field(static=True)
    references: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def negative_mass(self) -> float:
        """The fraction of the sum of absolute weights that is due to negative ones."""
        return float(np.maximum(-self.weights, 0).sum() / np.abs(self.weights).sum())

    def mean(self, f: IntegrandSpec | Integrands) -> Estimate:
        """Estimate expectations, as `estimate` does."""
        wanted = integrands(f, self.sample)
        return self._compare(wanted, wanted, "mean")

    def sd(self, f: IntegrandSpec | Integrands) -> Estimate:
        r"""Estimate standard deviations $\sqrt{E f^2 - (E f)^2}$, with errors by the delta method."""
        wanted = integrands(f, self.sample)
        centre, scale = wanted.values.mean(axis=(0, 1)), wanted.values.std(axis=(0, 1))
        z = (wanted.values - centre) / np.where(scale > 0, scale, 1.0)
        both = np.concatenate([z, z**2], axis=-1)
        first, second = np.split(self._statistics(both).mean, 2)
        series, variance = standard_deviation(z, first, second)
        plain, _ = standard_deviation(z, *np.split(self._plain_mean(both), 2))
        spread = self._statistics(variance)
        weak = ~(spread.mean > SURE * spread.mcse)
        why = "the variance of {} under the weights is not clearly above zero"
        ours, usual = (Integrands(values * scale, wanted.names) for values in (series, plain))
        result = self._compare(ours, usual, "standard deviation", weak, why)
        return replace(result, value=np.where(second > first**2, result.value, np.nan))

    def ratio(self, f: IntegrandSpec | Integrands, g: IntegrandSpec | Integrands) -> Estimate:
        r"""Estimate ratios of expectations $E f / E g$, with errors by the delta method.

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
        return self._compare(Integrands(ours, names), Integrands(usual, names), "ratio", weak, why)

    def probability(self, event: IntegrandSpec | Integrands) -> Estimate:
        """Estimate probabilities of events, clipped to 0 and 1.

        If an event is given as a function and is that a combination of coordinates exceeds a threshold,
        this is detected and the indicator is made continuous, see `Kinks`. Other indicators have jumps,
        which smooth functions approximate poorly, so that they gain less than means do.

        Args:
            event: integrands that are true or false (1 or 0) on every draw.
        """
        wanted = integrands(event, self.sample, jumps=True)
        if not np.isin(wanted.values, (0, 1)).all():
            raise ValueError(
                "an event must be true or false on every draw: give a condition, such as "
                "lambda x: x[0] > 0, or use mean for other functions."
            )
        ours, sensitive = continuous(wanted, self.sample)
        result = self._compare(ours, wanted, "probability", sensitive=sensitive)
        return replace(result, value=np.clip(result.value, 0, 1))

    def quantile(
        self, f: IntegrandSpec | Integrands, q: float | int | Sequence[float] | AnyArray
    ) -> Estimate:
        r"""Estimate quantiles, by inverting the weighted distribution function.

        Weights may be negative, so the function $F(x) = \sum_i w_i 1\{f_i \le x\}$ is made monotone by
        sorting its values. If $s$ is the standard error of $F$ at the quantile, from the residuals of
        the indicator, that of the quantile is half the distance between the quantiles at $q - s$ and
        $q + s$, or $s / h$ times that at $q \pm h$ if few draws are so close ($h$ by Hall and Sheather,
        1988).

        Integrands that are monotone functions of a combination of coordinates, such as parameters, gain far
        more: their indicators are made continuous, see `Kinks`. Quantiles of discrete variables have no
        standard error.

        Args:
            f: the integrands.
            q: levels between 0 and 1, one or many.
        """
        _check_order(q, "quantile('mu', [0.05, 0.95])")
        wanted, levels = integrands(f, self.sample), levels_of(q)
        ours = Quantiles(wanted.values, self.weights, levels)
        plain = Quantiles(wanted.values, self._plain_weights(), levels)
        better = self._statistics(ours.indicators())
        errors = ours.slope(better.mcse, better.ess) * better.mcse
        better = replace(better, mean=ours.value, mcse=errors, batches=-better.batches)
        better = self._with_crossings(better, wanted, levels)
        usual = chain_statistics(linearised(plain.indicators(), self.sample.weights))
        errors = plain.slope(usual.mcse, usual.ess) * usual.mcse
        usual = replace(usual, mean=plain.value, mcse=errors, batches=-usual.batches)
        names = tuple(f"{name} {100 * level:g}%" for name in wanted.names for level in levels)
        better, usual = _without_errors(better, ours), _without_errors(usual, plain)
        weak = np.isnan(better.mcse) & ~ours.is_discrete
        reasons = [
            _reason(weak, names, "too few draws beyond {}"),
            _reason(ours.is_discrete, names, DISCRETE, ""),
        ]
        reason = "; ".join(filter(None, reasons)) or None
        return self._assemble(better, usual, names, "quantile", reason)

    def _with_crossings(
        self, known: ChainStatistics, wanted: Integrands, levels: np.ndarray
    ) -> ChainStatistics:
        """Replace quantiles by those of continuous distribution functions, where their errors are smaller."""
        found = crossings(wanted.values, levels, self.sample)
        if not len(found.which):
            return known
        of = self._statistics(found.below)
        value, error = (each.ravel() for each in found.refined(of.mean, of.mcse))
        of = replace(of, mean=value, mcse=error, batches=-of.batches)
        at = (len(levels) * found.which[:, None] + np.arange(len(levels))).ravel()
        lower = ~(of.mcse >= known.mcse[at])  # also where there was no error

        def put(into: AnyArray, new: AnyArray) -> np.ndarray:
            into = np.array(into)
            into[..., at[lower]] = new[..., lower]
            return into

        return jax.tree.map(put, known, of)

    def density(self, f: IntegrandSpec | Integrands, grid: Sequence[float] | AnyArray) -> Estimate:
        r"""Estimate a marginal density, without a bandwidth, with its error at every point.

        It is the expectation of an integrand made from the scores: [the derivation](../math.md#jumps). The
        plain value is a kernel density estimate with Silverman's bandwidth, whose bias its error omits.

        Args:
            f: one integrand that is a monotone function of a combination of coordinates, such as a parameter.
            grid: the points at which the density is wanted.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> found = sx.weigh(sx.Sample(x, -x), sx.Polynomial(2)).density("x[0]", [0.0, 1.0])
        >>> found.value.round(4).tolist()
        [0.3989, 0.242]
        """
        _check_order(grid, "density('mu', [0.0, 0.5, 1.0])")
        wanted, points = integrands(f, self.sample), np.atleast_1d(np.asarray(grid, float))
        values = np.asarray(wanted.values, np.float64)
        if values.shape[-1] != 1 or points.ndim != 1 or not np.isfinite(points).all():
            raise ValueError("density: give one integrand, and a grid of finite numbers.")
        found = densities(values, points, self.sample)
        if found is None:
            raise ValueError(
                f"{wanted.names[0]} is not a monotone function of a combination of coordinates, or the draws "
                "have weights: use a kernel density estimate of the draws, such as ArviZ's plot_dist."
            )
        width = 0.9 * _robust_sd(values) * self.sample.size ** (-1 / 5)
        kernel = np.exp(-(((values - points) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
        names = tuple(f"{wanted.names[0]} at {point:g}" for point in points)
        ours, usual = Integrands(found[0].reshape(kernel.shape), names), Integrands(kernel, names)
        return self._compare(ours, usual, "density", sensitive=found[1])

    def median(self, f: IntegrandSpec | Integrands) -> Estimate:
        """Estimate medians, by inverting the weighted distribution function as in `quantile`.

        Args:
            f: the integrands.

        >>> import numpy as np, steinax as sx
        >>> x = 3 + np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> medians = sx.weigh(sx.Sample(x, 3 - x), sx.Polynomial(2)).median("x")
        >>> medians.names, bool(np.all(abs(medians.value - 3) < 0.1))
        (('x[0]', 'x[1]'), True)
        """
        wanted = integrands(f, self.sample)
        result = self.quantile(wanted, 0.5)
        return replace(result, names=wanted.names, note=f"median, {self.note}")

    def hdi(self, f: IntegrandSpec | Integrands, prob: float | int | None = None) -> Estimate:
        r"""Estimate the ends of the narrowest intervals of a given probability.

        It is the narrowest interval $[Q(p), Q(p + \text{prob})]$ of the weighted quantile function $Q$ of
        `quantile`: the highest-density interval of a distribution with one mode. Its ends have no
        standard error, and `mcse` is NaN: the widths of neighbouring intervals hardly differ, so that the
        delta method does not apply. The ends of intervals of `quantile` have standard errors.

        Args:
            f: the integrands.
            prob: a probability between 0 and 1; by default ArviZ's, `rcParams["stats.ci_prob"]`.

        >>> import numpy as np, steinax as sx
        >>> x = 3 + np.random.default_rng(0).normal(size=(4, 250, 1))
        >>> sx.weigh(sx.Sample(x, 3 - x), sx.Polynomial(2)).hdi("x", 0.9).names
        ('x[0] hdi90_lb', 'x[0] hdi90_ub')
        """
        _check_order(prob, "hdi('mu', 0.9)")
        if prob is None:
            from arviz_base import rcParams

            prob = float(rcParams["stats.ci_prob"])
        if not 0 < prob < 1:
            raise ValueError(f"prob={prob}: give a probability between 0 and 1, such as 0.9.")
        wanted = integrands(f, self.sample)
        ours, usual = (
            narrowest(wanted.values, w, prob) for w in (self.weights, self._plain_weights())
        )
        both = np.repeat(wanted.values, 2, axis=-1)
        below, plainly_below = ((both <= ends).astype(both.dtype) for ends in (ours, usual))
        better = self._statistics(below)
        plain = chain_statistics(linearised(plainly_below, self.sample.weights))
        no_error = np.full(len(ours), np.nan)
        better, plain = (
            replace(statistics, mean=ends, mcse=no_error, batches=-statistics.batches)
            for statistics, ends in ((better, ours), (plain, usual))
        )
        kind = f"hdi{100 * prob:g}"  # as ArviZ calls it
        names = tuple(f"{name} {kind}_{end}" for name in wanted.names for end in ("lb", "ub"))
        return self._assemble(better, plain, names, kind, HDI)

    def resample(self, n: int, key: Key | None = None) -> Resampled:
        """Resample draws of equal weight systematically, in random order.

        Negative weights count as zero: `negative_mass` says how much is neglected. Averages are therefore
        a little less accurate than with the weights. Use the draws for plots and for programs that do not
        accept weights.

        Args:
            n: the number of draws.
            key: for the random numbers; a fixed one by default.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> new = sx.weigh(sx.Sample(x, -x), sx.Polynomial(2)).resample(100)
        >>> bool(np.all(new.draws == x[new.chain, new.draw]))
        True
        """
        first, second = jax.random.split(random_key(key))
        uniform = float(jax.random.uniform(first))
        index = systematic(np.maximum(self.weights.ravel(), 0), n, uniform)
        index = index[np.asarray(jax.random.permutation(second, n))]
        chain, draw = np.unravel_index(index, self.weights.shape)
        return Resampled(self.sample.draws[chain, draw], chain, draw)

    def to_dataset(self) -> "xarray.Dataset":
        """Convert the weights to a labelled array, to be stored among ArviZ's `sample_stats`.

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
        chains = counted(self.sample.chains, "chain")
        return (
            f"WeightedDraws({chains} x {self.sample.length} draws, {self.chosen}, {self.note}, "
            f"{100 * self.negative_mass:.2g}% negative)"
        )

    def _statistics(self, values: Series) -> ChainStatistics:
        """Compute the statistics of the residuals of integrands on held-out draws."""
        flat = values.reshape(self.sample.size, -1).astype(self.weights.dtype)
        weights = self.sample.weights
        held = with_moves(self.fitted.leave_out(flat), None if weights is None else weights.ravel())
        return controlled_statistics(held.residual.reshape(values.shape), values, held.unseen)

    def _plain_weights(self) -> np.ndarray:
        """Return the weights of plain averages, with sum 1."""
        weights = self.sample.weights
        return (
            np.full(self.weights.shape, 1 / self.weights.size)
            if weights is None
            else weights / weights.sum()
        )

    def _plain_mean(self, values: Series) -> np.ndarray:
        return linearised(values, self.sample.weights).mean(axis=(0, 1))

    def _compare(
        self,
        ours: Integrands,
        usual: Integrands,
        kind: str,
        weak: AnyArray = False,
        why: str = "",
        sensitive: AnyArray | float = 0.0,
    ) -> Estimate:
        """Estimate with control variates and by plain averages; no standard error if an argument is weak.

        Args:
            ours: the integrands, linearised at the estimates with control variates.
            usual: the integrands, linearised at the plain averages.
            kind: the kind of quantity, for the note.
            weak: which integrands get no standard error.
            why: the reason for that, with a placeholder for names.
            sensitive: the variance of estimates that their series do not show, relative to theirs.
        """
        better = self._statistics(ours.values)
        weak = np.broadcast_to(weak, len(ours.names))
        error = better.mcse * np.sqrt(1 + sensitive)
        better = replace(better, mcse=np.where(weak, np.nan, error))
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
        result = from_statistics(
            *(better, plain, names, chosen, note, reason, self.references),
            constants=() if kind in ("mean", "probability") else names,
        )
        return replace(result, audit=self.audit)


def _check_order(numbers: object, example: str) -> None:
    """Refuse integrands that are given after the numbers that go with them."""
    if isinstance(numbers, str | Mapping) or callable(numbers):
        raise TypeError(f"the integrands come first, and then the numbers: {example}.")


def _robust_sd(values: np.ndarray) -> float:
    """Compute the standard deviation, or that of a Gaussian with the same interquartile range, if smaller."""
    normal = NormalDist()
    low, high = np.quantile(values, [0.25, 0.75])
    return float(min(values.std(), (high - low) / (2 * normal.inv_cdf(0.75))) or values.std())


def _reason(
    weak: np.ndarray, names: tuple[str, ...], why: str, cure: str = ": use more draws"
) -> str | None:
    if not weak.any():
        return None
    which = ", ".join(name for name, bad in zip(names, weak, strict=True) if bad)
    return why.format(which) + cure


def _without_errors(known: ChainStatistics, quantiles: Quantiles) -> ChainStatistics:
    """Replace the quantiles of discrete variables by those of the draws, without standard errors."""
    steps = quantiles.is_discrete
    value, error = np.where(steps, quantiles.value, known.mean), np.where(steps, np.nan, known.mcse)
    return replace(known, mean=value, mcse=error)


LEVELS = (0.05, 0.5, 0.95)  # of the quantiles that a family is chosen for


def weigh(
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    f: IntegrandSpec | Integrands | None = None,
    penalty: AbstractPenalty | Sequence[AbstractPenalty] | None = None,
    audit: AuditMode = "raise",
) -> WeightedDraws:
    r"""Compute weights of the draws such that weighted averages have far smaller errors than plain ones.

    The weights $w$ are those with which $\sum_i w_i f(x_i)$ is the cross-fitted estimate of $E f$, for
    every $f$ at once: see `WeightedDraws`. With no family given, candidates are tried as in `estimate`,
    and the one of least residual variance, in the geometric mean over integrands, is used for all.
    Training points are not used, because they would get weights too.

    Args:
        sample: the draws and scores.
        family: a family of control variates, linear in its parameters; chosen from the draws by default.
        f: the integrands for which the family is chosen; by default every coordinate, its squared
            distance from its mean, and whether it is below its 5, 50 and 95% quantiles.
        penalty: on the parameters of a given family, one for all terms or one for each.
        audit: what to do if the scores do not belong to the draws, as in `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> draws = sx.weigh(sx.Sample(x, -x))
    >>> np.allclose(draws.weights.sum(), 1.0)
    True
    >>> draws.quantile("x[0]", 0.5).names
    ('x[0] 50%',)
    """
    if isinstance(family, Sample):
        raise TypeError(
            "the sample comes first: weigh(sample) or weigh(sample, Polynomial(2)). Give the integrands to "
            "the result, such as weigh(sample).mean('mu')."
        )
    if isinstance(sample, Stream):
        raise TypeError("weigh needs its draws in memory: give a Sample.")
    check_sample(sample)
    _check(family, f, penalty)
    sample = sample.with_training()
    report, family = audited(sample, audit), family or space_family(sample)
    dtype = np.float64 if family is None else sample.dtype  # the search uses float64
    with precision(dtype), few_threads(sample), progress("weighing draws"):
        if family is None:
            wanted = _integrands_for_choice(f, sample)
            ess = chain_statistics(linearised(wanted.values, sample.weights)).ess
            fitted, used, note = for_all(wanted, sample, ess)
            chosen = str(used)
        else:
            problem, _ = prepare(no_integrands(sample), sample, family, penalty, None)
            folds = CrossFit().boundaries(sample.chains, sample.length)
            fitted = Exact().crossfitted(problem, folds)
            used, note = problem.family, f"{len(folds)} folds, {fitted.note}"
            chosen = describe(used)
        weights = np.asarray(fitted.averaging()).reshape(sample.chains, sample.length)
        papers = ChainStatistics.references + references_of(used, CrossFit())
        result = WeightedDraws(weights, sample, fitted, report, chosen, noted(note, audit), papers)
        with_audit(result.mean(_moments(sample)), report, audit)  # only for its errors and warnings
        return result


def _moments(sample: Sample) -> dict[str, np.ndarray]:
    """Return standardised columns and their squares, to compare weighted with plain averages."""
    x = np.asarray(sample.draws, np.float64)
    y = (x - x.mean(axis=(0, 1))) / np.maximum(x.std(axis=(0, 1)), np.finfo(np.float64).tiny)
    columns = {name: y[..., i] for i, name in enumerate(sample.names)}
    return columns | {f"the square of {name}": column**2 for name, column in columns.items()}


def _integrands_for_choice(f: IntegrandSpec | Integrands | None, sample: Sample) -> Integrands:
    if f is not None:
        return integrands(f, sample)
    x = sample.draws
    squares = ((x - x.mean(axis=(0, 1))) / np.ptp(x, axis=(0, 1))) ** 2  # independent of units
    below = {f"below {q}": x <= np.quantile(x, q, axis=(0, 1)) for q in LEVELS}
    return integrands({"x": x, "square": squares, **below}, sample)


def _check(family: AbstractFamily | None, f: object, penalty: object) -> None:
    if family is None and penalty is not None:
        raise ValueError(
            "a penalty goes with a family: give one as the second argument, such as Polynomial(2), or "
            "leave it out to have both chosen from the draws."
        )
    if family is not None and f is not None:
        raise ValueError(
            "f is for choosing a family, and one is given: the weights do not depend on f. Leave it out, "
            "and give f to mean, sd, ratio, probability, quantile, median or hdi of the result."
        )
    if family is not None and not isinstance(family, AbstractLinearFamily):
        raise TypeError(
            f"{type(family).__name__} is not linear in its parameters, so its estimates are not weighted "
            "averages of f: use Polynomial, KernelTranslates or RandomFeatures, or estimate(f, ...)."
        )
