"""Estimates: the class `Estimate`, its storage, and functions of several estimates."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._numerics import precision
from .._require import UnknownNameError, meant, no_attribute
from .._show import listed, some_of, vectors_once
from .._types import AnyArray
from ..auditing import AuditReport
from ..chains import (
    ChainStatistics,
    chain_statistics,
    controlled_statistics,
    correlation,
    linearised,
    may_lack_mean,
    one_outcome,
    t_quantile,
)
from ..citing import references_of
from ..data import ByName, Integrands, places, shape_of
from ..solvers import HeldOut, instability
from ._choice import Candidates
from ._printed import COLUMNS, html, table

if TYPE_CHECKING:
    import pandas
    import xarray


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


AXIS = "integrand"
BATCHES = {"batches": "batch", "plain_batches": "plain_batch"}
TEXTS = ("note", "reason")


def to_dataset(estimate: "Estimate", fields: tuple[str, ...]) -> "xarray.Dataset":
    """Convert an estimate to a dataset: arrays over the integrands, and texts as attributes."""
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
    """Read the fields of an estimate from a dataset, except for the candidates and the audit."""
    if AXIS not in dataset.dims or not set(fields) <= set(dataset.data_vars):
        raise ValueError(
            f"a Dataset of {', '.join(map(str, dataset.data_vars)) or 'nothing'} is not an estimate: give "
            "what Estimate.to_dataset returned, or the group `steinax` of a file written by save."
        )
    arrays = {field: np.asarray(dataset[field].values) for field in fields}
    names = {text: tuple(map(str, dataset.coords[text].values)) for text in (AXIS, "chosen")}
    texts = {text: dataset.attrs.get(text) for text in TEXTS}
    keys = tuple(str(dataset.attrs.get("references", "")).split())
    named = {"names": names[AXIS], "chosen": names["chosen"], "references": keys}
    return {**arrays, **named, **texts}


def _along_axis(values: Any, ndim: int) -> np.ndarray:
    """Add the axis of integrands to the numbers of a single one."""
    array = np.asarray(values, dtype=np.float64)
    return array[..., None] if array.ndim < ndim else array


LARGEST = 4e9  # the most bytes of a covariance
BENT = 0.5  # standard errors: the largest deviation from linearity at one standard error


def derive(
    functions: Mapping[str, Callable], names: tuple[str, ...], of: ChainStatistics
) -> ChainStatistics:
    """Compute the statistics of functions of means; errors are NaN for functions far from linear.

    Args:
        functions: functions of the means by name, those of a vector together.
        names: the names of the means.
        of: the statistics of the means.
    """
    mean = np.atleast_1d(of.mean)
    batches = np.reshape(of.batches, (-1, len(mean)))
    spread = covariance(of.mcse, batches)
    results = [_derive(h, names, mean, spread) for h in functions.values()]
    value, error, slope = (np.array(column) for column in zip(*results, strict=True))
    used = slope != 0
    ess, rhat, freedom = map(np.atleast_1d, (of.ess, of.rhat, of.freedom))
    least, fewest = (np.where(used, array, np.inf).min(axis=1) for array in (ess, freedom))
    worst = np.where(used, rhat, -np.inf).max(axis=1, initial=1.0)
    return ChainStatistics(value, error, least, worst, fewest, batches @ slope.T)


def covariance(error: AnyArray, batches: AnyArray) -> np.ndarray:
    """Compute the covariance of averages from their standard errors and the batches of their series."""
    error = np.atleast_1d(error)
    size = 8 * len(error) ** 2
    if size > LARGEST:
        raise MemoryError(
            f"the covariance of {len(error)} estimates takes {size / 1e9:.0f} GB: ask for that of some, "
            'estimate[["a", "b"]].covariance, or use the factors in estimate.batches.'
        )
    return correlation(np.reshape(batches, (-1, len(error)))) * np.outer(error, error)


def _called(h: Callable, names: tuple[str, ...], mean: Callable[[str], Any]) -> Any:
    """Call a function of the expectations: of all by name, or of those that its arguments are named after."""
    parameters = inspect.signature(h).parameters
    asked = {name: mean(name) for name in parameters}
    if len(asked) > 1 and all(value is not None for value in asked.values()):
        return h(**asked)
    required = [name for name, one in parameters.items() if one.default is one.empty]
    missing = [name for name in required if asked[name] is None]
    if len(required) > 1 and missing:
        raise _unknown(missing[0], names)

    def known(name: str) -> Any:
        value = mean(name)
        if value is None:
            raise _unknown(name, names)
        return value

    return h(ByName({}, names, known))


def _unknown(name: str, names: Sequence[str]) -> UnknownNameError:
    """Make the error for a name that is not one of the integrands or vectors."""
    elements = [one for one in names if one.startswith(f"{name.partition('[')[0]}[")]
    known = elements if "[" in name and elements else vectors_once(names)
    return UnknownNameError(
        f"no integrand is called {name!r}: there are {some_of(known)}. {meant(name, known)}Use one of these."
    )


def _derive(
    h: Callable, names: tuple[str, ...], mean: np.ndarray, spread: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Compute the value of h at the means, its standard error and its gradient."""
    place = {name: i for i, name in enumerate(names)}

    def of_vector(v: AnyArray) -> jax.Array:
        def mean(name: str) -> Any:
            if name in place:
                return v[place[name]]
            rows = places(name, names)
            return v[np.array(rows)].reshape(shape_of([names[i] for i in rows])) if rows else None

        try:
            value = jnp.asarray(_called(h, names, mean), v.dtype)
        except jax.errors.TracerArrayConversionError as error:
            raise ValueError(
                "a function of the expectations is not made of jax operations, so its error cannot be "
                "computed: write it with jax.numpy, such as jnp.exp for np.exp."
            ) from error
        if value.ndim:
            raise ValueError(
                f"a function of the expectations gives an array of shape {value.shape}: let each "
                "function return one number, such as a sum, and give several functions in a dict."
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
    """Expectations with control variates and plain averages for comparison: arrays over the integrands.

    Attributes:
        value: the estimates.
        mcse: their Monte Carlo standard errors; NaN if there is no valid one (see `reason`).
        plain_value: the averages of f over all draws.
        plain_mcse: their Monte Carlo standard errors.
        worth: the gain in efficiency, (plain_mcse / mcse)^2: how many times as many plain draws are as
            accurate.
        rhat: split R-hat of the residuals.
        residual_ess: effective sample sizes of the residuals.
        plain_ess: effective sample sizes of f itself.
        plain_rhat: split R-hat of f itself.
        batches: means of consecutive residuals, less `value`, (batch, k).
        plain_batches: means of consecutive values of f, less `plain_value`, (batch, k).
        freedom: degrees of freedom of `mcse`, for intervals.
        plain_freedom: degrees of freedom of `plain_mcse`.
        names: the names of the integrands.
        chosen: the control variate that each integrand got.
        note: how the control variates were fitted and used.
        reason: why there is no standard error, or None.
        candidates: the table of candidates, if the choice was automatic: print it.
        audit: the audit of the draws and scores; None if there was none.
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
        """The number of independent draws whose plain averages would be as accurate: plain_ess * worth."""
        return np.asarray(self.plain_ess * self.worth)

    def interval(self, level: float = 0.95) -> np.ndarray:
        r"""Compute intervals that cover the expectations with the given probability, (..., 2).

        They are $\text{value} \pm t\,\text{mcse}$, with Student's quantile: the fewer the
        effective draws, and the heavier the tails of the residuals, the wider they are.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
        >>> sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)).interval().shape
        (1, 2)
        """
        return _interval(self.value, self.mcse, t_quantile(level, self.freedom))

    def plain_interval(self, level: float = 0.95) -> np.ndarray:
        """Compute intervals around the plain averages, (..., 2); see `interval`."""
        reach = t_quantile(level, self.plain_freedom)
        return _interval(self.plain_value, self.plain_mcse, reach)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the estimates, (k, k), from their standard errors and the batches' correlations.

        For tens of thousands of integrands, select some of them: `estimate[["a", "b"]].covariance`.
        """
        return covariance(self.mcse, self.batches)

    def derived(
        self,
        functions: Mapping[str, Callable[[Mapping[str, Any]], Any]]
        | Callable[[Mapping[str, Any]], Any],
    ) -> "Estimate":
        r"""Estimate differences, ratios and other functions of the expectations, with their errors.

        The error of $h(\mu)$ is $\sqrt{\nabla h^\top C\, \nabla h}$ with $C$ the covariance of the
        estimates: the delta method. If $h$ is far from linear within the errors, such as a ratio whose
        denominator may be zero, the error is NaN.

        Args:
            functions: functions by name, or one function, made of jax operations. Each takes the
                expectations by the names of the integrands, or of a vector: `mean["theta[0]"]` is a
                number and `mean["theta"]` an array. With several arguments, these are the names:
                `lambda mu, tau: mu / tau`.

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
        if not isinstance(functions, Mapping) or not all(map(callable, functions.values())):
            raise TypeError(
                f"{functions!r} is not a function of the expectations: give one, such as "
                "lambda mu, sd: mu / sd, or several by name, in a dict."
            )
        better, plain = (derive(functions, self.names, stats) for stats in self._statistics())
        bent = [name for name, e in zip(functions, better.mcse, strict=True) if np.isnan(e)]
        plain_bent = [name for name, e in zip(functions, plain.mcse, strict=True) if np.isnan(e)]
        of = bent or [f"the plain average of {listed(plain_bent)}"] * bool(plain_bent)
        why = f"{', '.join(of)} is too far from linear within the errors" if of else None
        used = sorted(set(self.chosen))
        many = "control variates" if self.candidates is None else "combinations of control variates"
        source = ", ".join(used) if len(used) <= 2 else f"{len(used)} {many}"
        chosen = (f"from {source}",) * len(functions)
        why = self.reason or why
        result = from_statistics(
            better, plain, tuple(functions), chosen, self.note, why, constants=functions
        )
        return replace(result, audit=self.audit, references=references_of(self))

    def to_dataset(self) -> "xarray.Dataset":
        """Convert to labelled arrays over the integrands, to be stored; `from_dataset` reads them back.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
        >>> stored = est.to_dataset()
        >>> stored["mcse"].sel(integrand="x[0]").shape, sx.Estimate.from_dataset(stored).names
        ((), ('x[0]', 'x[1]'))
        """
        return to_dataset(self, ARRAYS)

    def to_dataframe(self) -> "pandas.DataFrame":
        """Convert to a pandas data frame with a row for each integrand.

        The columns are those of the printed table, named like the attributes: `value`, `mcse`,
        `plain_value`, `plain_mcse`, `worth`, `ess` and `rhat`.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> frame = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1)).to_dataframe()
        >>> frame.index.tolist(), frame.columns.tolist()[:2]
        (['x[0]', 'x[1]'], ['value', 'mcse'])
        """
        import pandas

        columns = {name: np.atleast_1d(getattr(self, name)) for name in COLUMNS}
        return pandas.DataFrame(columns, index=list(self.names))

    @staticmethod
    def from_dataset(dataset: "xarray.Dataset") -> "Estimate":
        """Read an estimate from the result of `to_dataset`; candidates and audit are not stored."""
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
        """Make an estimate from held-out residuals, which any method may have computed.

        The standard error has two parts: the error of the series of residuals, and a term for how far the
        fits move from fold to fold. The estimate is not audited: see `audited` and `with_audit`.

        Args:
            held: the residuals, (n, k), linearised if draws have weights.
            f: the integrands on the same draws.
            chosen: the name of the control variate of each integrand.
            weights: importance weights of the draws, (chain, draw), for the plain averages.
            candidates: the table of candidates.
            references: the keys of the papers behind the method, for `citations`.

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
        result = from_statistics(
            *(better, plain, f.names, chosen, held.note, held.reason, references),
            constants=f.variables,
        )
        columns = np.asarray(f.values, np.float64).reshape(-1, len(f.names))
        flags = zip(f.names, may_lack_mean(columns), strict=True)
        heavy = tuple(name for name, flag in flags if flag)
        return replace(result, candidates=candidates, heavy=heavy)

    def _statistics(self) -> tuple[ChainStatistics, ChainStatistics]:
        """Return the statistics of the residuals, and those of f itself."""
        ours = (getattr(self, field) for field in _OURS)
        plain = (getattr(self, field) for field in _PLAIN)
        return ChainStatistics(*ours), ChainStatistics(*plain)

    def __getitem__(self, name: str | SupportsIndex | slice | Sequence[str]) -> "Estimate":
        """Select the estimate of one integrand, with arrays reduced to numbers, or of several, by name.

        The name of a vector stands for all its elements: `est["theta"]` has `theta[0]`, `theta[1]` and so
        on. A number is the index of an integrand, so that a loop over an estimate yields them one by one; a
        slice selects several.

        >>> import numpy as np, steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 3))
        >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
        >>> est["x[0]"].value.shape, est["x"].value.shape, est[["x[0]", "x[2]"]].covariance.shape
        ((), (3,), (2, 2))
        """
        with suppress(TypeError):  # a name is no index
            name = self.names[index(cast(SupportsIndex, name))]
        if isinstance(name, slice):
            name = self.names[name]
        names = [name] if isinstance(name, str) else list(cast(Sequence[str], name))
        place = {key: i for i, key in enumerate(self.names)} if len(names) > 1 else {}
        hits = [[place[key]] if key in place else places(key, self.names) for key in names]
        if not all(hits):
            raise _unknown(names[hits.index([])], self.names)
        rows = [i for hit in hits for i in hit]
        which = rows[0] if isinstance(name, str) and name == self.names[rows[0]] else rows
        arrays = {
            field: np.asarray(_along_axis(getattr(self, field), 1 + (field in BATCHES))[..., which])
            for field in ARRAYS
        }
        tried = None if self.candidates is None else self.candidates.of(rows)
        chosen = tuple(self.chosen[i] for i in rows)
        kept = tuple(self.names[i] for i in rows)
        heavy = tuple(name for name in kept if name in self.heavy)
        labels = {"names": kept, "chosen": chosen, "heavy": heavy}
        return replace(self, candidates=tried, **labels, **arrays)

    def __sub__(self, other: "Estimate") -> "Estimate":
        r"""Subtract an estimate of the same integrands from an independent run.

        The errors are assumed to be independent, as those of two models or of two samplers are, so they
        add in quadrature, $\sqrt{\text{mcse}_1^2 + \text{mcse}_2^2}$; a missing error stays missing. For a
        difference within one run use `derived`, which accounts for the correlation.

        Args:
            other: an estimate with the same names, in any order.

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
            raise AttributeError(no_attribute("Estimate", name, _ELSEWHERE), name=name, obj=self)

    def __len__(self) -> int:
        return len(self.names)

    def __float__(self) -> float:
        if len(self) != 1:
            raise TypeError(
                f"an estimate of {len(self)} integrands is not one number: give that of one, "
                f"float(estimate[{self.names[0]!r}]), or use the array estimate.value."
            )
        return float(np.ravel(self.value)[0])

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return html(self)


def same_names(first: Estimate, second: Estimate) -> Estimate:
    """Return the second estimate with its integrands in the order of the first; raise if they differ."""
    if first.names == second.names:
        return second
    odd = sorted(set(first.names) ^ set(second.names))
    if odd:
        raise ValueError(
            f"two estimates of different integrands: {some_of(odd, 5)} is in only one of them. Choose "
            "those that both have, estimate[names], and for differences between integrands of one run "
            "use derived."
        )
    return second[list(first.names)]


def same_draws(first: Estimate, second: Estimate) -> bool:
    """Return whether two estimates use the same draws, judged by the batches of plain averages."""
    ours, theirs = np.asarray(first.plain_batches), np.asarray(second.plain_batches)
    if ours.shape != theirs.shape:
        return False
    same = (ours == theirs).all(axis=0) & (ours != 0).any(axis=0)
    return bool(np.any(same & (np.asarray(first.plain_value) == np.asarray(second.plain_value))))


def _difference(new: Estimate, old: Estimate) -> Estimate:
    if same_draws(new, old):
        raise ValueError(
            "both estimates are of the same draws, so their errors are not independent: estimate both "
            "functions in one call, and use derived for their difference."
        )
    pairs = zip(new._statistics(), old._statistics(), strict=True)
    better, plain = (_independent_difference(*pair) for pair in pairs)
    chosen = (a if a == b else f"{a}; {b}" for a, b in zip(new.chosen, old.chosen, strict=True))
    why = "; ".join(dict.fromkeys(why for why in (new.reason, old.reason) if why)) or None
    note = "difference of independent runs"
    result = from_statistics(
        better, plain, new.names, tuple(chosen), note, why, constants=new.names
    )
    audit = None if new.audit is None or old.audit is None else new.audit.merged(old.audit)
    return replace(result, audit=audit, references=references_of((new, old)))


def _independent_difference(new: ChainStatistics, old: ChainStatistics) -> ChainStatistics:
    """Compute the statistics of a difference of independent averages, with Welch's degrees of freedom."""
    error = np.hypot(new.mcse, old.mcse)
    scale = np.where(error > 0, error, 1.0)
    terms = [
        np.where(error > 0, (a.mcse / scale) ** 4, 0.5) / np.asarray(a.freedom) for a in (new, old)
    ]
    fields = (
        new.mean - old.mean,
        error,
        np.minimum(new.ess, old.ess),
        np.fmax(new.rhat, old.rhat),  # undefined for one chain
        1 / (terms[0] + terms[1]),
        np.concatenate([_sized(new), -_sized(old)]),
    )
    return ChainStatistics(*map(np.asarray, fields))


def _sized(of: ChainStatistics) -> np.ndarray:
    """Scale batches such that the sum of their squares is the squared standard error."""
    size = np.sqrt(np.square(of.batches).sum(axis=0))
    return np.asarray(of.batches / np.where(size > 0, size, 1.0) * of.mcse)


_OURS = ("value", "mcse", "residual_ess", "rhat", "freedom", "batches")
_PLAIN = tuple(f"plain_{field.removeprefix('residual_')}" for field in _OURS)
ARRAYS = ("worth", *_OURS, *_PLAIN)


def from_statistics(
    better: ChainStatistics,
    plain: ChainStatistics,
    names: tuple[str, ...],
    chosen: tuple[str, ...],
    note: str,
    reason: str | None = None,
    references: tuple[str, ...] = (),
    constants: Collection[str] = (),
) -> Estimate:
    """Make an estimate from the statistics of the residuals, and those of f itself.

    A function that is 0 on all draws, or 1, may be an event, and then has no standard error.

    Args:
        better: of the residuals.
        plain: of f.
        names: of the integrands.
        chosen: the control variate of each.
        note: on the method.
        reason: why there are no standard errors.
        references: papers on the method.
        constants: names of those that are not events, such as variables of the model.
    """
    if reason is None and np.any(np.isnan(better.mcse + plain.mcse) & np.isfinite(better.mean)):
        reason = (
            "there are fewer than 4 averaged draws in each chain; give longer chains to have one"
        )
    events = np.array([name not in constants for name in names], dtype=bool)
    mcse, plain_mcse = better.mcse, plain.mcse
    if events.any() and np.any(alike := events & one_outcome(plain.mean, plain.mcse)):
        which = listed([name for name, one in zip(names, alike, strict=True) if one])
        unknown = (
            f"all draws of {which} are equal, 0 or 1. If it is an event, its probability differs from that "
            "by at most 3 / the number of effective draws, with a probability of 95%"
        )
        reason = unknown if reason is None else f"{reason}; {unknown}"
        mcse, plain_mcse = (np.where(alike, np.nan, error) for error in (mcse, plain_mcse))
    with np.errstate(invalid="ignore", divide="ignore"):
        worth = np.asarray((plain_mcse / mcse) ** 2)
    return Estimate(
        value=better.mean,
        mcse=mcse,
        plain_value=plain.mean,
        plain_mcse=plain_mcse,
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
