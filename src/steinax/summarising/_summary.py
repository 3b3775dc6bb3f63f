"""Summarise all parameters in a table, with control variates."""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from .._numerics import few_threads
from .._require import UnknownNameError, meant
from .._show import PERFECT, counted, some_of, worth_text
from ..adapters import from_arviz
from ..auditing import AuditMode, AuditReport, audited
from ..chains import chain_statistics
from ..data import (
    ADAPTERS,
    AXES,
    Integrands,
    Sample,
    Variables,
    as_dataset,
    discrete,
    has_families,
    kept_training,
    labels,
    refuse_weights,
    training_note,
    without_rounding,
)
from ..estimation import (
    Estimate,
    Quantiles,
    crossings,
    estimate,
    no_mean,
    with_audit,
)
from ..families import AbstractFamily, Polynomial
from ._render import FORMATS, SUSPECT, VERIFIED, Format, output

if TYPE_CHECKING:
    import pandas
    import rich.table
    import xarray

    type Data = Sample | xarray.DataTree | str | os.PathLike[str]


def as_sample(data: Any) -> Sample:
    """Convert a DataTree with scores, or a file, to a sample without an audit; return a sample as is."""
    if isinstance(data, Sample):
        refuse_weights(data, "summary")
        return data
    import xarray

    if not isinstance(data, (xarray.DataTree, str, os.PathLike)):
        raise TypeError(
            f"summary takes no {type(data).__name__}: give a Sample, as Sample(draws, scores), a DataTree "
            f"with scores, or the path of a netCDF file or zarr store. {ADAPTERS}"
        )
    return from_arviz(data, audit=False)


def parameters(
    sample: Sample,
    var_names: str | list[str] | None,
    filter_vars: str | None,
    coords: Mapping[str, Any] | None = None,
) -> "xarray.Dataset":
    """Select the variables to summarise, as floats, with axes (chain, draw, ...).

    Args:
        sample: with variables of the model, or without.
        var_names: names as in ArviZ; all variables by default.
        filter_vars: how names are matched: None, "like" or "regex".
        coords: the labels to keep, by dimension; all by default.
    """
    import arviz_stats  # noqa: F401  # registers the accessor

    if sample.variables is None:
        dataset = as_dataset(sample)
    else:
        dataset = sample.variables.tree["posterior"].to_dataset()[list(sample.variables.names)]
    if isinstance(var_names, str):
        var_names = [var_names]
    if filter_vars is None and var_names is not None:
        dataset = dataset.assign(_elements(dataset, var_names))
    try:
        dataset = dataset.azstats.filter_vars(var_names, filter_vars).ds
    except KeyError as error:
        known = list(map(str, dataset))
        unknown = [name for name in var_names or () if name.lstrip("~") not in dataset]
        raise UnknownNameError(
            f"no variable is called {', '.join(unknown)}: there are {some_of(known)}. "
            f"{''.join(meant(name.lstrip('~'), known) for name in unknown[:1])}Use some of these; columns of "
            "the draws that are not variables can be given to estimate."
        ) from error
    if not dataset.data_vars:
        raise ValueError(
            f"var_names={var_names!r} leaves no variable to summarise: give names of existing variables."
        )
    return _selected(dataset, coords or {}).map(_as_floats).transpose(*AXES, ...)


def _selected(dataset: "xarray.Dataset", coords: Mapping[str, Any]) -> "xarray.Dataset":
    """Select labels along dimensions, which stay even if there is one label."""
    try:
        return dataset.sel({name: np.atleast_1d(label) for name, label in coords.items()})
    except (KeyError, ValueError) as error:
        axes = {
            str(name): some_of(list(map(str, dataset[name].values)), 5)
            for name in dataset.dims
            if name not in AXES
        }
        raise ValueError(
            f"coords={dict(coords)!r} does not fit: {error.args[0]}. The dimensions and their labels are "
            f"{axes}."
        ) from error


def _elements(dataset: "xarray.Dataset", names: Sequence[str]) -> dict[str, Any]:
    """Select single elements of variables, such as `theta[Choate]`, as variables of these names."""
    variables = Variables(dataset)
    found = {
        name: variables.labelled(name) for name in names if "[" in name and name not in dataset
    }
    return {name: (AXES, one[0][..., 0]) for name, one in found.items() if one is not None}


def _as_floats(variable: "xarray.DataArray") -> "xarray.DataArray":
    if variable.dtype.kind not in "fiub":
        raise ValueError(
            f"the variable {variable.name!r} is of type {variable.dtype} and has no mean: leave it out, by "
            f'var_names=["~{variable.name}"].'
        )
    return variable.astype(np.float64).compute()


@dataclass(frozen=True)
class Ends:
    """The ends of an interval: columns are the lower and the upper one, (k, 2).

    Attributes:
        names: of the two columns, as in ArviZ; none if the interval is not an equal-tailed one.
        levels: the probabilities below them.
        value: the ends.
        mcse: their standard errors.
    """

    names: tuple[str, ...]
    levels: tuple[float, ...]
    value: np.ndarray
    mcse: np.ndarray


FLOOR = 4 * np.finfo(np.float64).eps  # relative rounding error: no smaller error is reported


@dataclass(frozen=True)
class SummaryMoments:
    """Means and standard deviations with their errors, all (k,), and the ends of an interval.

    `controlled` marks the parameters with control variates: the others are constant or not finite.
    """

    mean: np.ndarray
    sd: np.ndarray
    mcse_mean: np.ndarray
    mcse_sd: np.ndarray
    ends: Ends
    controlled: np.ndarray | None = None
    heavy: tuple[str, ...] = ()
    audit: AuditReport | None = None


def controlled(
    wanted: Integrands,
    plain: SummaryMoments,
    sample: Sample,
    family: AbstractFamily | None,
    mode: AuditMode,
) -> SummaryMoments:
    """Improve the plain moments wherever control variates reduce their errors.

    Args:
        wanted: the parameters.
        plain: their plain moments.
        sample: the draws and scores.
        family: of control variates; None for an automatic choice.
        mode: of the audit.
    """
    report, names = audited(sample, mode), wanted.names
    with np.errstate(invalid="ignore"):
        values = np.asarray(wanted.values)
        usable = np.isfinite(values).all(axis=(0, 1)) & (np.ptp(values, axis=(0, 1)) > 0)
    if not usable.any():
        return replace(plain, controlled=usable, audit=report)
    usable_plain = _take(plain, usable)
    chosen = wanted.mapped(lambda v: v[..., usable], np.array(names)[usable].tolist())
    shown = [f"{name}, standardised" for name in chosen.names]
    unit = chosen.mapped(lambda v: (v - usable_plain.mean) / usable_plain.sd, shown)
    squares = unit.mapped(np.square, [f"the square of {name}" for name in shown])
    both = Integrands.joined([unit, squares])
    estimates = estimate(both, sample, family, audit="off")
    estimates = with_audit(estimates, report, mode)
    uncontrolled = (
        estimates.value == estimates.plain_value
    )  # exactly equal where no control variate was used
    better = _keep_better(_moments(estimates, usable_plain), usable_plain, uncontrolled)
    better = replace(better, ends=_ends(usable_plain.ends, chosen, sample, family))
    heavy = tuple(name for name in names if f"{name}, standardised" in estimates.heavy)
    moments = _put(plain, usable, better)
    return replace(moments, controlled=usable, heavy=heavy, audit=estimates.audit)


def _ends(plain: Ends, wanted: Integrands, sample: Sample, family: AbstractFamily | None) -> Ends:
    r"""Improve the ends of intervals by one Newton step from quantiles of the draws.

    The step is the estimated error of the distribution function there over its slope. For functions of one
    coordinate indicators are made continuous first, and the quantiles are those of their average. Then
    `Polynomial(2)`, which is cheap, is fitted to the residual. The plain ends stay where it does not help,
    and for discrete variables, whose quantiles have no standard error.
    """
    count, dim = wanted.size, sample.draws.shape[-1]
    if not plain.names or (family is None and has_families(sample)):
        return plain
    degree = 2 if dim * (dim + 3) / 2 <= min(count / 4, COLUMNS) else 1
    family = family or Polynomial(degree)
    known = crossings(wanted.values, np.array(plain.levels), sample)
    others = np.setdiff1d(np.arange(len(wanted.names)), known.which)
    ends = Quantiles(
        np.asarray(wanted.values), np.full(wanted.values.shape[:2], 1 / sample.size), known.levels
    )
    usual, shape = chain_statistics(ends.indicators()), plain.value.shape
    plain_error = (ends.slope(usual.mcse, usual.ess) * usual.mcse).reshape(shape)
    value, mcse = plain.value.copy(), np.full(shape, np.nan)
    if len(known.which):
        below = Integrands(known.below, tuple(map(str, range(known.value.size))))
        found = estimate(below, sample, family, audit="off")
        value[known.which], mcse[known.which] = known.refined(found.value, found.mcse)
    if len(others):
        at = (others[:, None] * len(known.levels) + np.arange(len(known.levels))).ravel()
        found = _stepped(ends, at, wanted, sample, family)
        value[others], mcse[others] = (each.reshape(len(others), -1) for each in found)
    worse = ~(mcse < plain_error) | ~np.isfinite(value)
    value, mcse = np.where(worse, plain.value, value), np.where(worse, plain_error, mcse)
    steps = discrete(np.asarray(wanted.values))[:, None]
    value, mcse = np.where(steps, plain.value, value), np.where(steps, np.nan, mcse)
    return replace(plain, value=value, mcse=mcse)


def _stepped(
    ends: Quantiles, at: np.ndarray, wanted: Integrands, sample: Sample, family: AbstractFamily
) -> tuple[np.ndarray, np.ndarray]:
    """Some quantiles by a Newton step, and their errors."""
    indicators = wanted.mapped(lambda v: ends.indicators(v)[..., at], list(map(str, at)))
    found = estimate(indicators, sample, family, audit="off")
    slope = ends.slope(found.mcse, found.plain_ess, at)
    return ends.value[at] + slope * (found.plain_value - found.value), slope * found.mcse


def _moments(estimates: Estimate, plain: SummaryMoments) -> SummaryMoments:
    r"""Compute means and standard deviations from expectations $m_1, m_2$ of $(f - c) / s$ and its square.

    The mean is $c + s\, m_1$ and the standard deviation $\sigma = s \sqrt{m_2 - m_1^2}$. With $e_1, e_2$ the
    errors and $\rho$ their correlation, the delta method gives

    $$ \frac{s^2}{2 \sigma} \sqrt{e_2^2 + 4 m_1^2 e_1^2 - 4 m_1 \rho\, e_1 e_2} . $$
    """
    centre, scale, k = plain.mean, plain.sd, len(plain.mean)
    first, second = estimates.value[:k], estimates.value[k:]
    error, error_second = estimates.mcse[:k], estimates.mcse[k:]
    left, right = estimates.batches[:, :k], estimates.batches[:, k:]
    sizes = np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0))
    correlation = (left * right).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)
    variance = second - first**2
    square = error_second**2 + 4 * first * error * (first * error - correlation * error_second)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit_sd = np.sqrt(variance)
        error_sd = np.sqrt(np.maximum(square, 0.0)) / (2 * unit_sd)
    return SummaryMoments(
        centre + scale * first,
        scale * unit_sd,
        np.maximum(scale * error, FLOOR * np.abs(centre)),
        scale * np.maximum(error_sd, FLOOR),
        plain.ends,
    )


def _keep_better(
    better: SummaryMoments, plain: SummaryMoments, uncontrolled: np.ndarray
) -> SummaryMoments:
    """Replace controlled moments by plain ones where a control variate made the error larger.

    Where none was used, the mean keeps the error of `estimate`, which is no smaller and accounts for
    chains that disagree.

    Args:
        better: with control variates.
        plain: without.
        uncontrolled: where no control variate was used, for the means and then for the squares, (2 k,).
    """
    mean_uncontrolled, square_uncontrolled = np.split(uncontrolled, 2)
    worse = ~mean_uncontrolled & (better.mcse_mean > plain.mcse_mean)
    keep_mean = mean_uncontrolled | worse
    with np.errstate(invalid="ignore"):
        better_sd = (better.sd > 0) & ~(better.mcse_sd > plain.mcse_sd)
    keep_sd = square_uncontrolled | ~better_sd
    return SummaryMoments(
        np.where(keep_mean, plain.mean, better.mean),
        np.where(keep_sd, plain.sd, better.sd),
        np.where(worse, plain.mcse_mean, better.mcse_mean),
        np.where(keep_sd, plain.mcse_sd, better.mcse_sd),
        plain.ends,
    )


ARRAYS = ("mean", "sd", "mcse_mean", "mcse_sd")


def _take(moments: SummaryMoments, which: np.ndarray) -> SummaryMoments:
    ends = replace(moments.ends, value=moments.ends.value[which], mcse=moments.ends.mcse[which])
    return replace(
        moments, **{field: getattr(moments, field)[which] for field in ARRAYS}, ends=ends
    )


def _put(moments: SummaryMoments, which: np.ndarray, subset: SummaryMoments) -> SummaryMoments:
    def put(into: SummaryMoments | Ends, of: SummaryMoments | Ends, field: str) -> np.ndarray:
        array = getattr(into, field).copy()
        array[which] = getattr(of, field)
        return array

    ends = {field: put(moments.ends, subset.ends, field) for field in ("value", "mcse")}
    arrays = {field: put(moments, subset, field) for field in ARRAYS}
    return replace(moments, **arrays, ends=replace(moments.ends, **ends))


type Kind = Literal["all", "stats", "diagnostics"]

COLUMNS = 2000  # most columns of the polynomial for ends of intervals: a second for 4,000 draws
LITTLE = 2.0  # gain in efficiency below which parameters are named in the note
BOUNDS = ("_lb", "_ub")
MEDIANS = "medians have no control variates here"


class SummarySettings(TypedDict, total=False):
    """Arguments of `summary` that do not affect the type of its result."""

    filter_vars: str | None
    coords: Mapping[str, Any] | None
    kind: Kind
    ci_prob: float | None
    ci_kind: str | None
    round_to: int | str | None
    family: AbstractFamily | None
    audit: AuditMode


@overload
def summary(
    data: "Data",
    var_names: str | list[str] | None = None,
    *,
    fmt: Literal["wide", "long"] = "wide",
    **settings: Unpack[SummarySettings],
) -> "pandas.DataFrame": ...
@overload
def summary(
    data: "Data",
    var_names: str | list[str] | None = None,
    *,
    fmt: Literal["xarray"],
    **settings: Unpack[SummarySettings],
) -> "xarray.Dataset": ...
@overload
def summary(
    data: "Data",
    var_names: str | list[str] | None = None,
    *,
    fmt: Literal["rich"],
    **settings: Unpack[SummarySettings],
) -> "rich.table.Table": ...
def summary(
    data: "Sample | xarray.DataTree | str | os.PathLike[str]",
    var_names: str | list[str] | None = None,
    *,
    filter_vars: str | None = None,
    coords: Mapping[str, Any] | None = None,
    kind: Kind = "all",
    fmt: Format = "wide",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    round_to: int | str | None = "auto",
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
    r"""Summarise every parameter as ArviZ does, with control variates where they help.

    The columns of `arviz_stats.summary` come first, under its names: `mean`, `sd`, `mcse_mean` and
    `mcse_sd` are the controlled ones, and so are the ends of an equal-tailed interval; `ess_bulk`, `ess_tail`
    and `r_hat` are those of the draws, as in ArviZ. Then come the errors of the ends, such as
    `mcse_eti89_lb`; `ess`, the number of independent draws whose plain mean would be as accurate,
    $(\text{sd} / \text{mcse\_mean})^2$; `worth`, how many times as many draws of this sampler would be,
    $(\text{plain\_mcse\_mean} / \text{mcse\_mean})^2$; and `plain_mean`, `plain_sd`, `plain_mcse_mean`,
    `plain_mcse_sd` and the plain ends, ArviZ's own numbers. Where no control variate helps, the
    plain numbers stay. A note below the table says what was gained, what limits it and what to do.

    Args:
        data: a sample, a DataTree with scores (see `from_arviz`), or the path of a netCDF file or zarr store.
        var_names: which variables, all by default; with `~` before a name, all but that.
        filter_vars: None for exact names, `"like"` for parts of them, `"regex"`.
        coords: the labels to keep, by dimension: `{"school": ["Choate", "Deerfield"]}`.
        kind: `"all"`, `"stats"` or `"diagnostics"`: which columns, as in ArviZ.
        fmt: `"wide"`, a pandas DataFrame with a row for each parameter; `"long"`, with a row for each
            statistic; `"xarray"`, a Dataset with a dimension `summary`; or `"rich"`, a table to be printed.
        ci_prob: the probability of the interval; ArviZ's default.
        ci_kind: `"eti"` or `"hdi"`; ArviZ's default.
        round_to: `"auto"` shows as many digits as the errors support and keeps the numbers as they are; a
            number of places, or significant digits such as `"3g"`, rounds them; `"none"` does nothing.
        family: of control variates; chosen from the draws by default.
        audit: what to do if the scores do not belong to the draws, as in `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> table = sx.summary(sx.Sample(x, -x, names=["mu", "nu"]))
    >>> bool(table.loc["mu", "mcse_sd"] < table.loc["mu", "plain_mcse_sd"] / 10)
    True
    """
    _check(kind, fmt)
    _check_probability(ci_prob)
    if isinstance(var_names, Sample) or hasattr(var_names, "subtree"):
        raise TypeError(
            "the sample comes first, and then the names: summary(sample, ['mu', 'tau'])."
        )
    sample = as_sample(data)
    chosen = var_names, filter_vars, coords
    dataset = parameters(sample, *chosen).map(_without_rounding, keep_attrs=True)
    of_draws = _arviz(dataset, ci_prob, ci_kind)
    plain = np.concatenate([_flat(of_draws[name], 1) for name in dataset], axis=-1)
    table = dict(zip(of_draws["summary"].values.tolist(), plain, strict=True))
    names = tuple(name for each in dataset for name in labels(str(each), dataset[each]))
    training = _on_training(sample, chosen, len(names))
    wanted = Integrands(_values(dataset), names, training)
    _settle_constants(table, wanted.values)
    with few_threads(sample):
        better = controlled(wanted, _plain(table, ci_prob), sample, family, audit)
    columns = _columns(table, better)
    whole = _to_dataset(of_draws, columns)
    note = "" if training is None else f"\n{training_note(sample).capitalize()}."
    whole.attrs["steinax"] = _note(names, columns, better) + note
    whole.attrs[VERIFIED] = int(better.audit is None or better.audit.verified)
    return output(whole, [name for name in columns if _belongs(name, kind)], fmt, round_to)


def _settle_constants(table: dict[str, np.ndarray], values: np.ndarray) -> None:
    """Remove the rounding errors of averages from the rows of constants, in place."""
    with np.errstate(invalid="ignore"):
        constant = np.ptp(values, axis=(0, 1)) == 0
    for column, exact in (
        ("mean", values[0, 0]),
        ("sd", 0.0),
        ("mcse_mean", 0.0),
        ("mcse_sd", 0.0),
    ):
        table[column] = np.where(constant & np.isfinite(table[column]), exact, table[column])


def _values(dataset: "xarray.Dataset") -> np.ndarray:
    """Put the elements of all variables side by side, (chain, draw, k)."""
    return np.concatenate([_flat(dataset[name], 2) for name in dataset], axis=-1)


def _on_training(sample: Sample, chosen: tuple[Any, ...], k: int) -> np.ndarray | None:
    """Evaluate the parameters on the training points that are used, (training, k).

    None if there are none, or if a parameter is unknown or not finite there.
    """
    parts = []
    for part, kept in zip(sample.training, kept_training(sample), strict=True):
        try:
            dataset = parameters(part, *chosen)
        except (KeyError, ValueError):
            return None
        parts.append(_values(dataset).reshape(part.size, -1)[kept])
    if not parts or any(values.shape[1] != k or not np.isfinite(values).all() for values in parts):
        return None
    return np.concatenate(parts)


def _check(kind: str, fmt: str) -> None:
    if kind not in ("all", "stats", "diagnostics"):
        hint = f"; {MEDIANS}, arviz_stats.summary has them" if "median" in kind else ""
        raise ValueError(f"kind={kind!r}{hint}: use 'all', 'stats' or 'diagnostics'.")
    if fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: use one of {', '.join(map(repr, FORMATS))}.")


def _check_probability(prob: object) -> None:
    if prob is not None and not (isinstance(prob, int | float | np.number) and 0 < prob <= 1):
        raise ValueError(
            f"ci_prob={prob!r}: give the probability that an interval covers, one number such as 0.95."
        )


def _belongs(column: str, kind: str) -> bool:
    name = column.removeprefix("plain_")
    statistic = name in ("mean", "sd") or (name.endswith(BOUNDS) and not name.startswith("mcse"))
    return kind == "all" or statistic == (kind == "stats")


def _arviz(dataset: "xarray.Dataset", prob: float | None, kind: Any) -> "xarray.Dataset":
    """Compute ArviZ's unrounded summary of the draws, without warnings about constant parameters."""
    import arviz_stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        table: Any = arviz_stats.summary(  # type: ignore[attr-defined]
            dataset, kind="all", fmt="xarray", ci_prob=prob, ci_kind=kind, round_to="none"
        )
    axes = {name: ("summary", *dataset[name].dims[2:]) for name in dataset}
    return table.assign({name: table[name].transpose(*order) for name, order in axes.items()})


def _without_rounding(array: "xarray.DataArray") -> "xarray.DataArray":
    """Make elements constant that vary by rounding only."""
    array = array.transpose(*AXES, ...)
    return array.copy(data=without_rounding(np.asarray(array.values)))


def _flat(array: "xarray.DataArray", axes: int) -> np.ndarray:
    """Flatten all dimensions of an array except the first `axes` ones."""
    first = AXES if axes == 2 else ("summary",)
    values = np.asarray(array.transpose(*first, ...).values, np.float64)
    return values.reshape(*values.shape[:axes], -1)


def _plain(table: dict[str, np.ndarray], prob: float | None) -> SummaryMoments:
    from arviz_base import rcParams

    names = tuple(name for name in table if name.endswith(BOUNDS) and name.startswith("eti"))
    probability = float(rcParams["stats.ci_prob"] if prob is None else prob)
    levels = ((1 - probability) / 2, (1 + probability) / 2)[: len(names)]
    none = np.zeros((len(table["mean"]), 0))
    value = np.stack([table[name] for name in names], -1) if names else none
    ends = Ends(names, levels, value, np.full(value.shape, np.nan))
    mean, sd, error, error_sd = (table[name] for name in ARRAYS)
    return SummaryMoments(mean, sd, error, error_sd, ends)


def _columns(table: dict[str, np.ndarray], better: SummaryMoments) -> dict[str, np.ndarray]:
    """Collect all columns of the table, in order."""
    moments = {name: getattr(better, name) for name in ARRAYS}
    ends = dict(zip(better.ends.names, better.ends.value.T, strict=True))
    errors = {
        f"mcse_{name}": error
        for name, error in zip(better.ends.names, better.ends.mcse.T, strict=True)
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = (table["mcse_mean"] / better.mcse_mean) ** 2
        ess = (better.sd / better.mcse_mean) ** 2
    plain = {f"plain_{name}": table[name] for name in (*moments, *ends)}
    return {**table, **moments, **ends, **errors, "ess": ess, "worth": worth, **plain}


def _to_dataset(of_draws: "xarray.Dataset", columns: dict[str, np.ndarray]) -> "xarray.Dataset":
    """Convert columns to variables with the dimensions and coordinates of ArviZ's summary."""
    import xarray

    numbers, used, variables = np.stack(list(columns.values())), 0, {}
    for name, array in of_draws.data_vars.items():
        template = array.transpose("summary", ...).isel(summary=0, drop=True)
        block = numbers[:, used : used + template.size].reshape(len(columns), *template.shape)
        variables[name] = xarray.DataArray(
            block, dims=("summary", *template.dims), coords=template.coords
        )
        used += template.size
    return xarray.Dataset(variables).assign_coords(summary=list(columns))


def _note(names: tuple[str, ...], columns: dict[str, np.ndarray], better: SummaryMoments) -> str:
    """Write the note below the table: what was gained, what limits it, and what to do."""
    worth, r_hat = columns["worth"], columns["r_hat"]
    assert better.controlled is not None
    usable = np.isfinite(worth) & better.controlled
    lines, audit = [], better.audit
    if usable.any() and (audit is None or audit.passed):
        lines.append(_describe_gain(names, np.where(usable, worth, np.nan)))
        advice = _advice(names, np.where(usable, worth, np.nan), r_hat)
        lines += [] if better.heavy and advice == GAINED else [advice]
    constant = int((~better.controlled).sum())
    if constant:
        lines.append(
            f"{counted(constant, 'row')} of {len(worth)}: constant or not finite, and not improved."
        )
    if better.heavy:
        lines.append(no_mean(better.heavy))
    if audit is not None and audit.passed and audit.verified:
        lines += [found.message for found in audit.problems if found.kind == "divergences"]
    elif audit is not None:
        lines.append(repr(audit))
        if not audit.verified:
            lines.append(
                "Until the scores are checked, means and sds have the digits of the plain ones."
            )
    return "\n".join(lines)


def _describe_gain(names: tuple[str, ...], worth: np.ndarray) -> str:
    """Describe the gain in efficiency of the means; those whose `worth` is NaN are left out."""
    least, median = int(np.nanargmin(worth)), float(np.nanmedian(worth))
    if median < 1.05:
        return "These means are about as accurate as plain means from the same draws."
    if worth[least] > PERFECT:
        return "These means are as accurate as plain means from more than a billion times as many draws."
    sentence = (
        f"These means are as accurate as plain means from {worth_text(median).replace('>', 'more than ')} "
        "times as many draws"
    )
    if np.isfinite(worth).sum() == 1:
        return f"{sentence}."
    return f"{sentence} (median; least for {names[least]}: {worth_text(worth[least])})."


GAINED = "Every mean gained."


def _advice(names: tuple[str, ...], worth: np.ndarray, r_hat: np.ndarray) -> str:
    """Describe what limits the errors, and what to do about it."""
    mixed = ~(r_hat > SUSPECT)
    if np.isnan(r_hat).all():
        return "R-hat needs several chains: run four. With one, nothing shows whether it has converged."
    if not mixed.all():
        worst = _first_of(names, ~mixed, -r_hat)
        return f"R-hat is above {SUSPECT} for {worst}: run the chains longer before you trust any error."
    poor = worth < LITTLE
    if not poor.any():
        return GAINED
    if poor[np.isfinite(worth)].all():
        return (
            "The control variates gain little here: only more draws make these means more accurate."
        )
    which = _first_of(names, poor, worth)
    return (
        f"Less than {LITTLE:g} times for {which}: only more draws make these means more accurate."
    )


def _first_of(names: tuple[str, ...], which: np.ndarray, order: np.ndarray) -> str:
    """Name the first of the selected parameters by `order`, and count the others."""
    selected = np.flatnonzero(which)
    first = names[int(selected[np.argmin(order[selected])])]
    more = len(selected) - 1
    return first if not more else f"{first} and {more} other{'s' if more > 1 else ''}"
