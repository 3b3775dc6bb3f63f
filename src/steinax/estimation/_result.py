"""The answer: estimates, their table, and how they are stored and combined."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._show import (
    FINEST,
    GAP,
    bare_table,
    beside_plain,
    count,
    html_table,
    listed,
    plain_text,
    shortened,
    some_of,
)
from .._types import AnyArray
from ..auditing import AuditReport, may_lack_mean
from ..chains import (
    ChainStatistics,
    chain_statistics,
    controlled_statistics,
    correlation,
    linearised,
    t_quantile,
)
from ..citing import references_of
from ..data import Integrands
from ..data._integrands import places
from ..data._variables import ByName, shape_of
from ..solvers import HeldOut
from ._choice import Candidates
from ._splits import instability

if TYPE_CHECKING:
    import pandas
    import xarray
    from rich.console import Group


_ELSEWHERE = {
    "mean": "the estimates are .value",
    "estimate": "the estimates are .value",
    "values": "the estimates are .value",
    "se": "the standard errors are .mcse",
    "std": "the standard errors are .mcse; summary(sample) has posterior standard deviations",
    "sd": "the standard errors are .mcse; summary(sample) has posterior standard deviations",
    "stderr": "the standard errors are .mcse",
    "error": "the standard errors are .mcse",
    "var": "the squares of .mcse are variances, and .covariance is of all",
    "ci": "intervals are .interval(0.95)",
    "hdi": "intervals of an expectation are .interval(0.95); summary(sample) has those of a posterior",
    "plain": "the plain averages are .plain_value, and their errors .plain_mcse",
    "quantile": "quantiles of the posterior are weigh(sample, Polynomial(2)).quantile(name, 0.5)",
    "median": "medians of the posterior are weigh(sample, Polynomial(2)).median(name)",
    "summary": "print the estimate; summary(sample) has every parameter",
    "plot": "plot_estimate(estimate) draws it",
    "r_hat": "R-hat is .rhat",
}


def no_attribute(name: str) -> str:
    """That an estimate has no attribute of a name, and which one may be meant.

    >>> no_attribute("mean")
    "'Estimate' object has no attribute 'mean': the estimates are .value."
    """
    hint = f": {_ELSEWHERE[name]}." if name in _ELSEWHERE else ""
    return f"'Estimate' object has no attribute {name!r}{hint}"


ROWS = 20  # of a long estimate that are shown
NAMES = 3  # the part of the width, one in so many, that long names may take
UNVERIFIED = (
    "Until then a value is shown to the digits of its plain average; .value has all of them."
)
MORE = ".chosen and .candidates"
HEADINGS = ("", "value", "mcse", "plain", "mcse", "worth", "ess", "rhat")


def table(estimate: "Estimate") -> str:
    """The estimate as a table that fits the terminal."""
    width = shutil.get_terminal_size().columns
    return plain_text(fitted(estimate, width, ROWS), width)


def fitted(estimate: "Estimate", width: int, rows: int | None = None, more: str = MORE) -> "Group":
    """The columns that there is room for, of some rows or all; below, how it was made.

    Args:
        estimate: what to show.
        width: of the terminal, in characters.
        rows: how many to show at most.
        more: where all choices are named.
    """
    from rich.console import Group
    from rich.text import Text

    cells = cells_of(estimate, rows)
    names = estimate.names[: len(cells)]
    room = min(max(map(len, names)), max(width // NAMES, 8))
    fit = _fitting(cells, width - room)
    shown = bare_table()
    shown.add_column("", no_wrap=True, min_width=room, max_width=room)
    for heading in HEADINGS[1 : fit + 1]:
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, row in zip(names, cells, strict=True):
        shown.add_row(Text(shortened(name, room)), *row[:fit])
    hidden = HEADINGS[fit + 1 :]
    below = [f"no room for {', '.join(hidden)}"] if hidden else []
    return Group(shown, Text("\n".join([*below, *_below(estimate, rows, more)])))


def _fitting(cells: Sequence[tuple[str, ...]], left: int) -> int:
    """How many columns fit."""
    for before, column in enumerate(zip(HEADINGS[1:], *cells, strict=True)):
        left -= GAP + max(map(len, column))
        if left < 0:
            return max(before, 1)
    return len(HEADINGS) - 1


def html(estimate: "Estimate") -> str:
    """The same table as notebooks show it."""
    return html_table(HEADINGS, _rows(estimate), _below(estimate, ROWS))


def _rows(estimate: "Estimate") -> list[tuple[str, ...]]:
    cells = cells_of(estimate, ROWS)
    return [(name, *row) for name, row in zip(estimate.names, cells, strict=False)]


def _below(estimate: "Estimate", rows: int | None, more: str = MORE) -> list[str]:
    """What was left out, how the estimate was made, the audit, and why an error is missing."""
    lines = _chosen(estimate, more)
    if rows is not None and len(estimate.names) > rows:
        lines.insert(0, f"... and {len(estimate.names) - rows} more: estimate[name] has each")
    if estimate.audit is not None:
        lines.extend(repr(estimate.audit).split("\n"))
    if _is_unverified(estimate) and np.any(estimate.mcse < estimate.plain_mcse):
        lines.append(UNVERIFIED)
    if estimate.heavy:
        lines.append(no_mean(estimate.heavy))
    if estimate.reason is not None:
        lines.append(f"no standard error: {estimate.reason}")
    return lines


def no_mean(names: Sequence[str]) -> str:
    """That the means of some integrands may not exist, and what to ask for."""
    return (
        f"{listed(names)}: the draws have a heavy tail (Pareto k-hat above 0.7) and the mean may not "
        "exist; ask for the median or another quantile, "
        "sx.weigh(sample, sx.Polynomial(2)).quantile(name, 0.5)"
    )


def _chosen(estimate: "Estimate", more: str) -> list[str]:
    """How the estimate was made: the choice that serves most integrands, and how many others there are."""
    (most, served), *others = Counter(estimate.chosen).most_common()
    if not others:
        return [f"{most}, {estimate.note}"]
    if served == 1:
        return [f"chosen for each by itself: see {more}", estimate.note]
    also = "one other" if len(others) == 1 else f"{len(others)} others"
    return [
        f"{served} of {len(estimate)} by {most}, and {also}: see {more}",
        estimate.note,
    ]


_COLUMNS = ("value", "mcse", "plain_value", "plain_mcse", "worth", "ess", "rhat")


def cells_of(estimate: "Estimate", rows: int | None = None) -> list[tuple[str, ...]]:
    """The numbers of the first rows as they are shown, all rows by default."""
    columns = (np.atleast_1d(getattr(estimate, name))[:rows] for name in _COLUMNS)
    finest = 1.0 if _is_unverified(estimate) else FINEST
    return [
        (*beside_plain(*numbers, finest=finest), *_of_chains(ess, rhat))
        for *numbers, ess, rhat in (map(float, row) for row in zip(*columns, strict=True))
    ]


def _is_unverified(estimate: "Estimate") -> bool:
    """Whether an audit looked, and nothing says that the scores are right beyond what it can see."""
    return estimate.audit is not None and not estimate.audit.verified


def _of_chains(ess: float, rhat: float) -> tuple[str, str]:
    return count(ess), f"{rhat:.3f}" if np.isfinite(rhat) else "-"  # one chain has none


AXIS = "integrand"
BATCHES = {"batches": "batch", "plain_batches": "plain_batch"}
TEXTS = ("note", "reason")


def to_dataset(estimate: "Estimate", fields: tuple[str, ...]) -> "xarray.Dataset":
    """Arrays over the integrands, under their names; texts as attributes."""
    import xarray

    arrays = {
        field: ((BATCHES[field], AXIS), _along_axis(getattr(estimate, field), 2))
        if field in BATCHES
        else ((AXIS,), _along_axis(getattr(estimate, field), 1))
        for field in fields
    }
    attributes = {text: value for text in TEXTS if (value := getattr(estimate, text)) is not None}
    if estimate.audit is not None:
        attributes["audit"] = repr(estimate.audit)
    attributes["references"] = " ".join(references_of(estimate))
    labels = {AXIS: list(estimate.names), "chosen": ((AXIS,), list(estimate.chosen))}
    return xarray.Dataset(arrays, labels, attributes)


def fields_of(dataset: "xarray.Dataset", fields: tuple[str, ...]) -> Mapping[str, Any]:
    """What `to_dataset` was given, but for the candidates and the audit."""
    if AXIS not in dataset.dims or not set(fields) <= set(dataset.data_vars):
        raise ValueError(
            f"a Dataset of {', '.join(map(str, dataset.data_vars)) or 'nothing'} is no estimate: give what "
            "Estimate.to_dataset returned, or the group `steinax` of a file written by save."
        )
    arrays = {field: np.asarray(dataset[field].values) for field in fields}
    names = {text: tuple(map(str, dataset.coords[text].values)) for text in (AXIS, "chosen")}
    texts = {text: dataset.attrs.get(text) for text in TEXTS}
    keys = tuple(str(dataset.attrs.get("references", "")).split())
    named = {"names": names[AXIS], "chosen": names["chosen"], "references": keys}
    return {**arrays, **named, **texts}


def _along_axis(values: Any, ndim: int) -> np.ndarray:
    """One integrand's numbers as arrays over one integrand."""
    array = np.asarray(values, dtype=np.float64)
    return array[..., None] if array.ndim < ndim else array


LARGEST = 4e9  # bytes of a covariance
BENT = 0.5  # standard errors off a straight line, one standard error away, that are too many


def derive(
    functions: Mapping[str, Callable], names: tuple[str, ...], of: ChainStatistics
) -> ChainStatistics:
    """Statistics of functions of means; NaN for the error of one that bends too much.

    Args:
        functions: each takes the means by name, those of a vector together.
        names: of the means.
        of: the statistics of the means.
    """
    mean = np.atleast_1d(of.mean)
    batches = np.reshape(of.batches, (-1, len(mean)))
    spread = covariance(of.mcse, batches)
    found = [_derive(h, names, mean, spread) for h in functions.values()]
    value, error, slope = (np.array(part) for part in zip(*found, strict=True))
    used = slope != 0
    ess, rhat, freedom = map(np.atleast_1d, (of.ess, of.rhat, of.freedom))
    least, fewest = (np.where(used, one, np.inf).min(axis=1) for one in (ess, freedom))
    worst = np.where(used, rhat, -np.inf).max(axis=1, initial=1.0)
    return ChainStatistics(value, error, least, worst, fewest, batches @ slope.T)


def covariance(error: AnyArray, batches: AnyArray) -> np.ndarray:
    """The covariance of averages, from their standard errors and the batches of their series."""
    error = np.atleast_1d(error)
    size = 8 * len(error) ** 2
    if size > LARGEST:
        raise MemoryError(
            f"the covariance of {len(error)} estimates takes {size / 1e9:.0f} GB: ask for that of some, "
            'estimate[["a", "b"]].covariance, or use the factors in estimate.batches.'
        )
    return correlation(np.reshape(batches, (-1, len(error)))) * np.outer(error, error)


def _derive(
    h: Callable, names: tuple[str, ...], mean: np.ndarray, spread: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """The value of h at the means, its standard error and its gradient."""
    place = {name: i for i, name in enumerate(names)}

    def of_vector(v: AnyArray) -> jax.Array:
        def mean(name: str) -> Any:
            if name in place:
                return v[place[name]]
            some = places(name, names)
            return v[np.array(some)].reshape(shape_of([names[i] for i in some])) if some else None

        value = jnp.asarray(h(ByName({}, names, mean)), v.dtype)
        if value.ndim:
            raise ValueError(
                f"a function of the expectations gives an array of shape {value.shape}: let each give one "
                "number, such as a sum, and give several functions in a dict."
            )
        return value

    with precision(np.float64):
        value, slope = jax.value_and_grad(of_vector)(jnp.asarray(mean, jnp.float64))
        slope = np.asarray(slope)
        error = float(np.sqrt(max(slope @ spread @ slope, 0.0)))
        if error > 0:
            away = spread @ slope / error
            bend = max(abs(of_vector(mean + s * away) - value - s * error) for s in (-1, 1))
            error = error if bend <= BENT * error else np.nan
    return float(value), error, slope


class Estimate(eqx.Module):
    """Expectations with control variates, beside the plain ones: arrays over the integrands.

    Attributes:
        value: the estimates.
        mcse: their Monte Carlo standard errors; NaN where there is no honest one (see `reason`).
        plain_value: the averages of f over all draws.
        plain_mcse: their Monte Carlo standard errors.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        rhat: split R-hat of the residuals.
        residual_ess: effective sample sizes of the residuals.
        plain_ess: effective sample sizes of f itself.
        plain_rhat: split R-hat of f itself.
        batches: means of consecutive residuals, less `value`, (batch, k).
        plain_batches: the same of f itself.
        freedom: degrees of freedom of `mcse`, for intervals.
        plain_freedom: those of `plain_mcse`.
        names: of the integrands.
        chosen: the control variate that each integrand got.
        note: how it was fitted and used.
        reason: why there is no standard error, or None.
        candidates: what was tried, if the choice was automatic: print it.
        audit: whether the scores are those of the draws; None if nobody looked.
        references: the keys of the papers behind family, solver and split, for `citations`.
        heavy: the names of integrands whose draws have a tail so heavy that their mean may not exist.

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
    rhat: AnyArray
    residual_ess: AnyArray
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
    references: tuple[str, ...] = eqx.field(static=True, default=())
    heavy: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def ess(self) -> np.ndarray:
        """How many independent draws would have plain averages as accurate: plain_ess * worth."""
        return np.asarray(self.plain_ess * self.worth)

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

    def derived(
        self,
        functions: Mapping[str, Callable[[Mapping[str, Any]], Any]]
        | Callable[[Mapping[str, Any]], Any],
    ) -> "Estimate":
        r"""Differences, ratios and other functions of the expectations, with their own errors.

        The error of $h(\mu)$ is $\sqrt{\nabla h^\top C\, \nabla h}$ with $C$ the covariance of the
        estimates: the delta method. Where $h$ bends within two standard errors so far that this
        means little, as a ratio does whose denominator may be zero, the error is NaN.

        Args:
            functions: by name, or one function, made of jax operations. Each is given the expectations
                by the names of the integrands, and those of a vector by its own: `mean["theta[0]"]` is
                a number and `mean["theta"]` an array.

        >>> import numpy as np, steinax as sx
        >>> x = 2 + np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.estimate("x", sx.Sample(x, 2 - x), sx.Polynomial(1))
        >>> ratio = est.derived({"ratio": lambda mean: mean["x[0]"] / mean["x[1]"]})
        >>> bool(abs(ratio.value[0] - 1) < 1e-10)
        True
        >>> bool(abs(est.derived(lambda mean: mean["x"].sum()).value[0] - 4) < 1e-10)
        True
        """
        functions = {"f": functions} if callable(functions) else functions
        better, plain = (derive(functions, self.names, one) for one in self._statistics())
        bent = [name for name, e in zip(functions, better.mcse, strict=True) if np.isnan(e)]
        why = f"{', '.join(bent)} is too far from linear within the errors" if bent else None
        made = (f"from {', '.join(sorted(set(self.chosen)))}",) * len(functions)
        found = beside(better, plain, tuple(functions), made, self.note, reason=why or self.reason)
        return replace(found, audit=self.audit, references=references_of(self))

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

    def to_dataframe(self) -> "pandas.DataFrame":
        """The table as a data frame of pandas, a row for each integrand.

        The columns are those of the printed table, by the names of the attributes: `value`, `mcse`,
        `plain_value`, `plain_mcse`, `worth`, `ess` and `rhat`.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> frame = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)).to_dataframe()
        >>> frame.index.tolist(), frame.columns.tolist()[:2]
        (['x[0]', 'x[1]'], ['value', 'mcse'])
        """
        import pandas

        columns = {name: np.atleast_1d(getattr(self, name)) for name in _COLUMNS}
        return pandas.DataFrame(columns, index=list(self.names))

    @staticmethod
    def from_dataset(dataset: "xarray.Dataset") -> "Estimate":
        """Read what `to_dataset` gave; candidates and audit are not stored."""
        return Estimate(**fields_of(dataset, ARRAYS))

    @staticmethod
    def from_held_out(
        held: HeldOut,
        f: Integrands,
        chosen: tuple[str, ...],
        weights: AnyArray | None = None,
        candidates: Candidates | None = None,
        references: tuple[str, ...] = (),
    ) -> "Estimate":
        """Make an estimate from held-out residuals, whatever computed them.

        The error bar is that of the residuals' series and of what they do not show: how far the fits move
        from fold to fold. The estimate is not audited: see `audited` and `with_audit`.

        Args:
            held: the residuals, (n, k), linearised where draws have weights.
            f: the integrands on the same draws.
            chosen: the name of the control variate of each integrand.
            weights: importance weights of the draws, (chain, draw), for the plain averages.
            candidates: what was tried.
            references: the keys of the papers behind it, for `citations`.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
        >>> f = sx.data.integrands(lambda x: x[0] + x[0] ** 2, sx.Sample(x, -x))
        >>> residual = (f.values - x).reshape(-1, 1)  # g(x) = x needs no fit
        >>> sx.Estimate.from_held_out(sx.solvers.HeldOut(residual, "known"), f, ("x",)).note
        'known'
        """
        residual, unseen = np.asarray(held.residual, np.float64), held.unseen
        if unseen is None and held.intercepts is not None and held.folds is not None:
            unseen = instability(residual, held.intercepts, held.folds)
        series = residual.reshape(len(f.values), -1, residual.shape[-1])
        better = controlled_statistics(series, f.values, np.zeros(()) if unseen is None else unseen)
        if held.reason is not None:
            better = replace(better, mcse=np.full_like(better.mcse, np.nan))
        plain = chain_statistics(linearised(f.values, weights))
        found = beside(better, plain, f.names, chosen, held.note, held.reason, references)
        columns = np.asarray(f.values, np.float64).reshape(-1, len(f.names))
        flags = zip(f.names, may_lack_mean(columns), strict=True)
        heavy = tuple(name for name, flag in flags if flag)
        return replace(found, candidates=candidates, heavy=heavy)

    def _statistics(self) -> tuple[ChainStatistics, ChainStatistics]:
        """Of the residuals, and of f itself."""
        ours = (getattr(self, field) for field in _OURS)
        plain = (getattr(self, field) for field in _PLAIN)
        return ChainStatistics(*ours), ChainStatistics(*plain)

    def __getitem__(self, name: str | SupportsIndex | Sequence[str]) -> "Estimate":
        """The estimate of one integrand, its arrays reduced to numbers, or of several, by name.

        The name of a vector stands for all its elements: `est["theta"]` has `theta[0]`, `theta[1]` and so
        on. A number is the place of an integrand, so that a loop over an estimate has them one by one.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 3))
        >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
        >>> est["x[0]"].value.shape, est["x"].value.shape, est[["x[0]", "x[2]"]].covariance.shape
        ((), (3,), (2, 2))
        """
        with suppress(TypeError):  # a name is no index
            name = self.names[index(cast(SupportsIndex, name))]
        names = [name] if isinstance(name, str) else list(cast(Sequence[str], name))
        place = {one: i for i, one in enumerate(self.names)} if len(names) > 1 else {}
        found = [[place[one]] if one in place else places(one, self.names) for one in names]
        if not all(found):
            unknown = names[found.index([])]
            raise KeyError(f"no integrand is called {unknown!r}: there are {some_of(self.names)}.")
        some = [i for one in found for i in one]
        which = some[0] if isinstance(name, str) and name == self.names[some[0]] else some
        arrays = {
            field: np.asarray(_along_axis(getattr(self, field), 1 + (field in BATCHES))[..., which])
            for field in ARRAYS
        }
        tried = None if self.candidates is None else self.candidates.of(some)
        chosen = tuple(self.chosen[i] for i in some)
        kept = tuple(self.names[i] for i in some)
        heavy = tuple(name for name in kept if name in self.heavy)
        labels = {"names": kept, "chosen": chosen, "heavy": heavy}
        return replace(self, candidates=tried, **labels, **arrays)

    def __sub__(self, other: "Estimate") -> "Estimate":
        r"""The difference of two estimates of the same integrands from independent runs.

        Their errors are taken to be independent, as those of two models or of two samplers are, so they
        add in quadrature, $\sqrt{\text{mcse}_1^2 + \text{mcse}_2^2}$; a missing one stays missing. For a
        difference within one run use `derived`, which knows the correlation.

        Args:
            other: with the same names, in any order.

        >>> import numpy as np, steinax as sx
        >>> runs = [m + np.random.default_rng(m).normal(size=(4, 250, 1)) for m in (0, 1)]
        >>> old, new = (sx.estimate("x", sx.Sample(x, m - x)) for m, x in enumerate(runs))
        >>> bool(abs((new - old).value[0] - 1) < 1e-10)
        True
        """
        if not isinstance(other, Estimate):
            return NotImplemented
        return _difference(self, same_names(self, other))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str):
            raise AttributeError(no_attribute(name), name=name, obj=self)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return html(self)


def same_names(one: Estimate, other: Estimate) -> Estimate:
    """The other estimate with its integrands in the order of the first; refused if they differ."""
    if one.names == other.names:
        return other
    odd = sorted(set(one.names) ^ set(other.names))
    if odd:
        raise ValueError(
            f"two estimates of different integrands: {some_of(odd, 5)} "
            "is in one of them. Choose those that both have, estimate[names], and for differences between "
            "integrands of one run use derived."
        )
    return other[list(one.names)]


def same_draws(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates are of the same draws: their plain averages are equal, and not constant."""
    ours, theirs = np.asarray(one.plain_batches), np.asarray(other.plain_batches)
    if ours.shape != theirs.shape:
        return False
    same = (ours == theirs).all(axis=0) & (ours != 0).any(axis=0)
    return bool(np.any(same & (np.asarray(one.plain_value) == np.asarray(other.plain_value))))


def _difference(one: Estimate, other: Estimate) -> Estimate:
    if same_draws(one, other):
        raise ValueError(
            "both estimates are of the same draws, so their errors are not independent: estimate both "
            "functions in one call, and use derived for their difference."
        )
    pairs = zip(one._statistics(), other._statistics(), strict=True)
    better, plain = (_independent_difference(*pair) for pair in pairs)
    chosen = (a if a == b else f"{a}; {b}" for a, b in zip(one.chosen, other.chosen, strict=True))
    why = "; ".join(dict.fromkeys(why for why in (one.reason, other.reason) if why)) or None
    note = "difference of independent runs"
    found = beside(better, plain, one.names, tuple(chosen), note, why)
    audit = None if one.audit is None or other.audit is None else one.audit.merged(other.audit)
    return replace(found, audit=audit, references=references_of((one, other)))


def _independent_difference(one: ChainStatistics, other: ChainStatistics) -> ChainStatistics:
    """Statistics of a difference of independent averages, its degrees of freedom by Welch."""
    error = np.hypot(one.mcse, other.mcse)
    scale = np.where(error > 0, error, 1.0)
    parts = [
        np.where(error > 0, (a.mcse / scale) ** 4, 0.5) / np.asarray(a.freedom)
        for a in (one, other)
    ]
    found = (
        one.mean - other.mean,
        error,
        np.minimum(one.ess, other.ess),
        np.fmax(one.rhat, other.rhat),  # one chain has none
        1 / (parts[0] + parts[1]),
        np.concatenate([_sized(one), -_sized(other)]),
    )
    return ChainStatistics(*map(np.asarray, found))


def _sized(of: ChainStatistics) -> np.ndarray:
    """The batches in units in which their squares add up to that of the standard error."""
    size = np.sqrt(np.square(of.batches).sum(axis=0))
    return np.asarray(of.batches / np.where(size > 0, size, 1.0) * of.mcse)


_OURS = ("value", "mcse", "residual_ess", "rhat", "freedom", "batches")
_PLAIN = tuple(f"plain_{field.removeprefix('residual_')}" for field in _OURS)
ARRAYS = ("worth", *_OURS, *_PLAIN)


def beside(
    better: ChainStatistics,
    plain: ChainStatistics,
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    note: str,
    reason: str | None = None,
    references: tuple[str, ...] = (),
) -> Estimate:
    """The estimate from the statistics of what is left of f, beside those of f itself."""
    if reason is None and np.any(np.isnan(better.mcse + plain.mcse) & np.isfinite(better.mean)):
        reason = (
            "there are fewer than 4 averaged draws in each chain; give longer chains to have one"
        )
    worth = np.asarray((plain.mcse / better.mcse) ** 2)
    return Estimate(
        value=better.mean,
        mcse=better.mcse,
        plain_value=plain.mean,
        plain_mcse=plain.mcse,
        worth=worth,
        rhat=better.rhat,
        residual_ess=better.ess,
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
        references=references_of(better) + references,
    )


def _interval(value: AnyArray, error: AnyArray, reach: AnyArray) -> np.ndarray:
    half = np.asarray(reach * error)
    return np.stack([value - half, value + half], axis=-1)
