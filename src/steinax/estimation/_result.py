from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import equinox as eqx
import numpy as np

from .._types import AnyArray
from ..auditing import AuditReport
from ..chains import ChainStatistics, t_quantile
from ._candidates import Candidates
from ._dataset import fields_of, to_dataset
from ._derived import covariance, derive
from ._guesses import no_attribute
from ._table import html, table

if TYPE_CHECKING:
    import xarray


class Estimate(eqx.Module):
    """Expectations with control variates, beside the plain ones: arrays over the integrands.

    Attributes:
        value: the estimates.
        mcse: their Monte Carlo standard errors; NaN where there is no honest one (see `reason`).
        plain_value: the averages of f over all draws.
        plain_mcse: their Monte Carlo standard errors.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        ess: effective sample sizes of the controlled series.
        rhat: split R-hat of the controlled series.
        plain_ess: effective sample sizes of f itself.
        plain_rhat: split R-hat of f itself.
        batches: means of consecutive draws of the controlled series, less `value`, (batch, k).
        plain_batches: the same of f itself.
        freedom: degrees of freedom of `mcse`, for intervals.
        plain_freedom: those of `plain_mcse`.
        names: of the integrands.
        chosen: the control variate that each integrand got.
        note: how it was fitted and used.
        reason: why there is no standard error, or None.
        candidates: what was tried, if the choice was automatic: print it.
        audit: whether the scores are those of the draws; None if nobody looked.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x))
    >>> bool(est["x[0]"].mcse < 1e-10)
    True
    """

    value: AnyArray
    mcse: AnyArray
    plain_value: AnyArray
    plain_mcse: AnyArray
    worth: AnyArray
    ess: AnyArray
    rhat: AnyArray
    plain_ess: AnyArray
    plain_rhat: AnyArray
    batches: AnyArray
    plain_batches: AnyArray
    freedom: AnyArray
    plain_freedom: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)
    chosen: tuple[str, ...] = eqx.field(static=True)
    note: str = eqx.field(static=True)
    reason: str | None = eqx.field(static=True, default=None)
    candidates: Candidates | None = None
    audit: AuditReport | None = None

    def interval(self, level: float = 0.95) -> np.ndarray:
        r"""Intervals that cover the expectations with the given probability, (..., 2).

        They are $\text{value} \pm t\,\text{mcse}$, with Student's quantile: the fewer the
        effective draws, and the heavier the tails of what is left, the further they reach.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
        >>> sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)).interval().shape
        (1, 2)
        """
        return _interval(self.value, self.mcse, t_quantile(level, self.freedom))

    def plain_interval(self, level: float = 0.95) -> np.ndarray:
        """The same for the plain averages."""
        reach = t_quantile(level, self.plain_freedom)
        return _interval(self.plain_value, self.plain_mcse, reach)

    @property
    def covariance(self) -> np.ndarray:
        """Of the estimates' errors, (k, k): their standard errors and the batches' correlations.

        Where there are tens of thousands, ask for that of some: `estimate[["a", "b"]].covariance`.
        """
        return covariance(self.mcse, self.batches)

    def derived(self, functions: Mapping[str, Callable[[dict[str, Any]], Any]]) -> "Estimate":
        r"""Differences, ratios and other functions of the expectations, with their own errors.

        The error of $h(\mu)$ is $\sqrt{\nabla h^\top C\, \nabla h}$ with $C$ the covariance of the
        estimates: the delta method. Where $h$ bends within two standard errors so far that this
        means little, as a ratio does whose denominator may be zero, the error is NaN.

        Args:
            functions: by name, made of jax operations; each is given a dict from the names of the
                integrands to their expectations.

        >>> import numpy as np, steinax as sx
        >>> x = 2 + np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.estimate("x", sx.Sample(x, 2 - x), sx.Polynomial(1))
        >>> ratio = est.derived({"ratio": lambda mean: mean["x[0]"] / mean["x[1]"]})
        >>> bool(abs(ratio.value[0] - 1) < 1e-10)
        True
        """
        better, plain = (derive(functions, self.names, one) for one in self._statistics())
        bent = [name for name, e in zip(functions, better.mcse, strict=True) if np.isnan(e)]
        why = f"{', '.join(bent)} is too far from linear within the errors" if bent else None
        made = (f"from {', '.join(sorted(set(self.chosen)))}",) * len(functions)
        found = beside(better, plain, tuple(functions), made, self.note, reason=why or self.reason)
        return replace(found, audit=self.audit)

    def to_dataset(self) -> "xarray.Dataset":
        """As labelled arrays over the integrands, to be stored; `from_dataset` reads them back.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
        >>> stored = est.to_dataset()
        >>> stored["mcse"].sel(integrand="x[0]").shape, sx.Estimate.from_dataset(stored).names
        ((), ('x[0]', 'x[1]'))
        """
        return to_dataset(self, ARRAYS)

    @staticmethod
    def from_dataset(dataset: "xarray.Dataset") -> "Estimate":
        """Read what `to_dataset` gave; candidates and audit are not stored."""
        return Estimate(**fields_of(dataset, ARRAYS))

    def _statistics(self) -> tuple[ChainStatistics, ChainStatistics]:
        """Of the controlled series, and of f itself."""
        ours = (getattr(self, field) for field in _BOTH)
        plain = (getattr(self, f"plain_{field}") for field in _BOTH)
        return ChainStatistics(*ours), ChainStatistics(*plain)

    def __getitem__(self, name: str | SupportsIndex | Sequence[str]) -> "Estimate":
        """The estimate of one integrand, its arrays reduced to numbers, or of several, by name.

        A number is the place of an integrand, so that a loop over an estimate has them one by one.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 3))
        >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
        >>> est["x[0]"].value.shape, est[["x[0]", "x[2]"]].covariance.shape
        ((), (2, 2))
        """
        with suppress(TypeError):  # a name is no index
            name = self.names[index(cast(SupportsIndex, name))]
        names = [name] if isinstance(name, str) else list(cast(Sequence[str], name))
        try:
            place = {one: i for i, one in enumerate(self.names)} if len(names) > 1 else None
            some = [self.names.index(one) if place is None else place[one] for one in names]
        except (KeyError, ValueError):
            unknown = next(one for one in names if one not in self.names)
            known = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
            raise KeyError(f"no integrand is called {unknown!r}: there are {known}.") from None
        which = some[0] if isinstance(name, str) else some
        arrays = {field: np.asarray(getattr(self, field)[..., which]) for field in ARRAYS}
        tried = None if self.candidates is None else self.candidates.of(some)
        chosen = tuple(self.chosen[i] for i in some)
        return replace(self, names=tuple(names), chosen=chosen, candidates=tried, **arrays)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            raise AttributeError(no_attribute(name), name=name, obj=self)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return html(self)


_BOTH = ("value", "mcse", "ess", "rhat", "freedom", "batches")  # plainly too
ARRAYS = ("worth", *_BOTH, *(f"plain_{field}" for field in _BOTH))


def beside(
    better: ChainStatistics,
    plain: ChainStatistics,
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    note: str,
    *,
    reason: str | None = None,
    candidates: Candidates | None = None,
) -> Estimate:
    """The estimate from the statistics of what is left of f, beside those of f itself."""
    if reason is None and np.any(np.isnan(better.mcse + plain.mcse) & np.isfinite(better.mean)):
        reason = (
            "there are fewer than 4 averaged draws in each chain; give longer chains to have one"
        )
    return Estimate(
        value=better.mean,
        mcse=better.mcse,
        plain_value=plain.mean,
        plain_mcse=plain.mcse,
        worth=(plain.mcse / better.mcse) ** 2,
        ess=better.ess,
        rhat=better.rhat,
        plain_ess=plain.ess,
        plain_rhat=plain.rhat,
        batches=better.batches,
        plain_batches=plain.batches,
        freedom=better.freedom,
        plain_freedom=plain.freedom,
        names=names,
        chosen=chosen,
        note=note,
        reason=reason,
        candidates=candidates,
    )


def _interval(value: AnyArray, error: AnyArray, reach: AnyArray) -> np.ndarray:
    half = np.asarray(reach * error)
    return np.stack([value - half, value + half], axis=-1)
