"""The summary of all parameters."""

import os
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from .._show import PERFECT
from .._types import Series
from ..adapters import from_arviz
from ..auditing import AuditReport
from ..data import Integrands, Sample
from ..data._sample import ADAPTERS, as_dataset, has_families
from ..data._variables import AXES, element
from ..data._weights import refuse_weights
from ..estimation import Estimate, Quantiles, estimate
from ..estimation._audited import AuditMode, audited, with_audit
from ..estimation._candidates import PLAIN
from ..estimation._result import no_mean
from ..families import AbstractFamily, Polynomial
from ._render import FORMATS, SUSPECT, VERIFIED, Format, output, times

if TYPE_CHECKING:
    import pandas
    import rich.table
    import xarray

    type Data = Sample | xarray.DataTree | str | os.PathLike[str]


def as_sample(data: Any) -> Sample:
    """A sample, from one, from a DataTree with scores or from a file; the audit comes later."""
    if isinstance(data, Sample):
        refuse_weights(data, "summary")
        return data
    import xarray

    if not isinstance(data, (xarray.DataTree, str, os.PathLike)):
        raise TypeError(
            f"a summary of type {type(data).__name__}: give a Sample, as Sample(draws, scores), a DataTree "
            f"with scores, or the path of a netCDF file or zarr store. {ADAPTERS}"
        )
    return from_arviz(data, audit=False)


def parameters(
    sample: Sample, var_names: str | list[str] | None, filter_vars: str | None
) -> "xarray.Dataset":
    """The variables to summarise, as numbers, with axes (chain, draw, ...).

    Args:
        sample: with variables of the model, or without.
        var_names: which, as ArviZ has it; all by default.
        filter_vars: how these are meant: None, "like" or "regex".
    """
    import arviz_stats  # noqa: F401  # registers the accessor

    if sample.variables is None:
        dataset = as_dataset(sample)
    else:
        dataset = sample.variables.tree["posterior"].to_dataset()[list(sample.variables.names)]
    if isinstance(var_names, str):
        var_names = [var_names]
    try:
        dataset = dataset.azstats.filter_vars(var_names, filter_vars).ds
    except KeyError as error:
        known = ", ".join(map(str, list(dataset)[:10]))
        raise KeyError(f"{error.args[0]}: there are {known}. Use some of these.") from None
    if not dataset.data_vars:
        raise ValueError(
            f"var_names={var_names!r} leaves no variable to summarise: give names that there are."
        )
    return dataset.map(_as_floats).transpose(*AXES, ...)


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
        names: of the two columns, as ArviZ has them; none if the ends are left as they are.
        levels: the probabilities below them.
        value: the ends.
        mcse: their standard errors.
    """

    names: tuple[str, ...]
    levels: tuple[float, ...]
    value: np.ndarray
    mcse: np.ndarray


FLOOR = 4 * np.finfo(np.float64).eps  # of a number: what rounding leaves of it


@dataclass(frozen=True)
class Moments:
    """Means and standard deviations with their errors, all (k,), and the ends of an interval.

    `controlled` says how many have control variates: the others are constant or not finite.
    """

    mean: np.ndarray
    sd: np.ndarray
    mcse_mean: np.ndarray
    mcse_sd: np.ndarray
    ends: Ends
    controlled: int = 0
    heavy: tuple[str, ...] = ()
    audit: AuditReport | None = None


def controlled(
    values: Series,
    names: tuple[str, ...],
    plain: Moments,
    sample: Sample,
    family: AbstractFamily | None,
    mode: AuditMode,
) -> Moments:
    """The plain moments, and better ones wherever control variates give them.

    Args:
        values: of the parameters, (chain, draw, k).
        names: of the parameters.
        plain: their plain moments.
        sample: the draws and scores.
        family: of control variates; None to have them chosen.
        mode: of the audit.
    """
    report = audited(sample, mode)
    with np.errstate(invalid="ignore"):
        usable = np.isfinite(values).all(axis=(0, 1)) & (np.ptp(values, axis=(0, 1)) > 0)
    if not usable.any():
        return replace(plain, audit=report)
    part = _take(plain, usable)
    unit = (values[..., usable] - part.mean) / part.sd
    shown = [f"{name}, standardised" for name, one in zip(names, usable, strict=True) if one]
    both = np.concatenate([unit, unit**2], axis=-1)
    wanted = Integrands(both, (*shown, *(f"the square of {name}" for name in shown)))
    found = estimate(wanted, sample, family, audit="off")
    found = with_audit(found, report, mode)
    alone = np.array([name == PLAIN for name in found.chosen])
    better = _best(_moments(found, part), part, alone)
    better = replace(better, ends=_ends(part.ends, values[..., usable], sample, family))
    heavy = tuple(name for name in names if f"{name}, standardised" in found.heavy)
    whole = _put(plain, usable, better)
    return replace(whole, controlled=int(usable.sum()), heavy=heavy, audit=found.audit)


def _ends(plain: Ends, values: Series, sample: Sample, family: AbstractFamily | None) -> Ends:
    r"""One step of Newton's from the plain quantiles: by the error of $F$ there over its slope.

    An indicator gains no more from the best kernels than from `Polynomial(2)`, which takes no time. The plain
    ends stay where it does not help.
    """
    count, dim = values[..., 0].size, sample.draws.shape[-1]
    if not plain.names or (family is None and has_families(sample)):
        return plain
    degree = 2 if dim * (dim + 3) / 2 <= min(count / 4, COLUMNS) else 1
    ends = Quantiles(values, np.full(values.shape[:2], 1 / count), np.array(plain.levels))
    indicators = ends.indicators()
    names = tuple(map(str, range(indicators.shape[-1])))
    found = estimate(
        Integrands(indicators, names), sample, family or Polynomial(degree), audit="off"
    )
    error = ends.error(found.mcse, found.plain_ess)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = ends.value + error / found.mcse * (found.plain_value - found.value)
        better = (found.mcse < found.plain_mcse) & np.isfinite(moved)
        usual = ends.error(found.plain_mcse, found.plain_ess)
    shape = plain.value.shape
    value = np.where(better.reshape(shape), moved.reshape(shape), plain.value)
    return replace(plain, value=value, mcse=np.where(better, error, usual).reshape(shape))


def _moments(found: Estimate, plain: Moments) -> Moments:
    r"""From the expectations $m_1$ and $m_2$ of $(f - c) / s$ and its square.

    The mean is $c + s\, m_1$ and the standard deviation $\sigma = s \sqrt{m_2 - m_1^2}$. With $e_1, e_2$ the
    errors and $\rho$ their correlation, the delta method gives

    $$ \frac{s^2}{2 \sigma} \sqrt{e_2^2 + 4 m_1^2 e_1^2 - 4 m_1 \rho\, e_1 e_2} . $$
    """
    centre, scale, k = plain.mean, plain.sd, len(plain.mean)
    first, second = found.value[:k], found.value[k:]
    error, error_second = found.mcse[:k], found.mcse[k:]
    left, right = found.batches[:, :k], found.batches[:, k:]
    sizes = np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0))
    correlation = (left * right).sum(axis=0) / np.where(sizes > 0, sizes, 1.0)
    variance = second - first**2
    square = error_second**2 + 4 * first * error * (first * error - correlation * error_second)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(variance)
        error_sd = np.sqrt(np.maximum(square, 0.0)) / (2 * root)
    return Moments(
        centre + scale * first,
        scale * root,
        np.maximum(scale * error, FLOOR * np.abs(centre)),
        scale * np.maximum(error_sd, FLOOR),
        plain.ends,
    )


def _best(better: Moments, plain: Moments, alone: np.ndarray) -> Moments:
    """The plain numbers, where a control variate was used and made the error larger.

    Where none was, the mean keeps the estimate's error: it is no smaller, and knows when chains disagree.

    Args:
        better: with control variates.
        plain: without.
        alone: where none was used, for the means and then for the squares, (2 k,).
    """
    mean_alone, square_alone = np.split(alone, 2)
    worse = ~mean_alone & (better.mcse_mean > plain.mcse_mean)
    kept = mean_alone | worse
    with np.errstate(invalid="ignore"):
        sure = (better.sd > 0) & ~(better.mcse_sd > plain.mcse_sd)
    wide = square_alone | ~sure
    return Moments(
        np.where(kept, plain.mean, better.mean),
        np.where(wide, plain.sd, better.sd),
        np.where(worse, plain.mcse_mean, better.mcse_mean),
        np.where(wide, plain.mcse_sd, better.mcse_sd),
        plain.ends,
    )


ARRAYS = ("mean", "sd", "mcse_mean", "mcse_sd")


def _take(whole: Moments, which: np.ndarray) -> Moments:
    ends = replace(whole.ends, value=whole.ends.value[which], mcse=whole.ends.mcse[which])
    return replace(whole, **{field: getattr(whole, field)[which] for field in ARRAYS}, ends=ends)


def _put(whole: Moments, which: np.ndarray, part: Moments) -> Moments:
    def put(into: Moments | Ends, of: Moments | Ends, field: str) -> np.ndarray:
        made = getattr(into, field).copy()
        made[which] = getattr(of, field)
        return made

    ends = {field: put(whole.ends, part.ends, field) for field in ("value", "mcse")}
    arrays = {field: put(whole, part, field) for field in ARRAYS}
    return replace(whole, **arrays, ends=replace(whole.ends, **ends))


type Kind = Literal["all", "stats", "diagnostics"]

COLUMNS = 2000  # of the polynomial for the ends of intervals, at most: a second for 4,000 draws
LITTLE = 2.0  # times as many draws: gains below are named
BOUNDS = ("_lb", "_ub")
MEDIANS = "medians have no control variates here"


class Settings(TypedDict, total=False):
    """The arguments of `summary` that do not decide what it returns."""

    filter_vars: str | None
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
    **settings: Unpack[Settings],
) -> "pandas.DataFrame": ...
@overload
def summary(
    data: "Data",
    var_names: str | list[str] | None = None,
    *,
    fmt: Literal["xarray"],
    **settings: Unpack[Settings],
) -> "xarray.Dataset": ...
@overload
def summary(
    data: "Data",
    var_names: str | list[str] | None = None,
    *,
    fmt: Literal["rich"],
    **settings: Unpack[Settings],
) -> "rich.table.Table": ...
def summary(
    data: "Sample | xarray.DataTree | str | os.PathLike[str]",
    var_names: str | list[str] | None = None,
    *,
    filter_vars: str | None = None,
    kind: Kind = "all",
    fmt: Format = "wide",
    ci_prob: float | None = None,
    ci_kind: str | None = None,
    round_to: int | str | None = "auto",
    family: AbstractFamily | None = None,
    audit: AuditMode = "raise",
) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
    r"""The summary of every parameter that ArviZ gives, with control variates where they help.

    The columns of `arviz_stats.summary` come first, under its names: `mean`, `sd`, `mcse_mean` and
    `mcse_sd` are the controlled ones, and so are the ends of an equal-tailed interval; `ess_bulk`, `ess_tail`
    and `r_hat` are of the draws, as ArviZ has them. Then come the errors of the ends, such as
    `mcse_eti89_lb`; `ess`, the number of independent draws whose plain mean would be as accurate,
    $(\text{sd} / \text{mcse\_mean})^2$; `worth`, how many times as many draws of this sampler would be,
    $(\text{plain\_mcse\_mean} / \text{mcse\_mean})^2$; and `plain_mean`, `plain_sd`, `plain_mcse_mean`,
    `plain_mcse_sd` and the plain ends, ArviZ's own numbers. Where no control variate helps, the
    plain numbers stay. A line below the table says what was gained, what limits it and what to do.

    Args:
        data: a sample, a DataTree with scores (see `from_arviz`), or the path of a netCDF file or zarr store.
        var_names: which variables, all by default; with `~` before a name, all but that.
        filter_vars: None for exact names, `"like"` for parts of them, `"regex"`.
        kind: `"all"`, `"stats"` or `"diagnostics"`: which columns, as in ArviZ.
        fmt: `"wide"`, a pandas DataFrame with a row for each parameter; `"long"`, with a row for each
            statistic; `"xarray"`, a Dataset with a dimension `summary`; or `"rich"`, a table to be printed.
        ci_prob: the probability of the interval; ArviZ's default.
        ci_kind: `"eti"` or `"hdi"`; ArviZ's default.
        round_to: `"auto"` shows as many digits as the errors support and keeps the numbers as they are; a
            number of places, or significant digits such as `"3g"`, rounds them; `"none"` does nothing.
        family: of control variates; chosen from the draws by default.
        audit: what to do if the scores are not those of the draws, as in `estimate`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> table = sx.summary(sx.Sample(x, -x, names=["mu", "nu"]))
    >>> bool(table.loc["mu", "mcse_sd"] < table.loc["mu", "plain_mcse_sd"] / 10)
    True
    """
    _check(kind, fmt)
    sample = as_sample(data)
    dataset = parameters(sample, var_names, filter_vars)
    of_draws = _arviz(dataset, ci_prob, ci_kind)
    values = np.concatenate([_flat(dataset[name], 2) for name in dataset], axis=-1)
    plain = np.concatenate([_flat(of_draws[name], 1) for name in dataset], axis=-1)
    table = dict(zip(of_draws["summary"].values.tolist(), plain, strict=True))
    names = _names(of_draws)
    better = controlled(values, names, _plain(table, ci_prob), sample, family, audit)
    columns = _columns(table, better)
    whole = _like(of_draws, {name: columns[name] for name in columns if _belongs(name, kind)})
    whole.attrs["steinax"] = _note(names, columns, better)
    whole.attrs[VERIFIED] = int(better.audit is None or better.audit.verified)
    return output(whole, fmt, round_to)


def _check(kind: str, fmt: str) -> None:
    if kind not in ("all", "stats", "diagnostics"):
        other = f"; {MEDIANS}, arviz_stats.summary has them" if "median" in kind else ""
        raise ValueError(f"kind={kind!r}{other}: use 'all', 'stats' or 'diagnostics'.")
    if fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: use one of {', '.join(map(repr, FORMATS))}.")


def _belongs(column: str, kind: str) -> bool:
    name = column.removeprefix("plain_")
    statistic = name in ("mean", "sd") or (name.endswith(BOUNDS) and not name.startswith("mcse"))
    return kind == "all" or statistic == (kind == "stats")


def _arviz(dataset: "xarray.Dataset", prob: float | None, kind: Any) -> "xarray.Dataset":
    """ArviZ's summary of the draws, unrounded; it divides by zero where a parameter is constant."""
    import arviz_stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Any = arviz_stats.summary(  # type: ignore[attr-defined]
            dataset, kind="all", fmt="xarray", ci_prob=prob, ci_kind=kind, round_to="none"
        )
    return found


def _flat(array: "xarray.DataArray", axes: int) -> np.ndarray:
    """The numbers, all dimensions but the first few made one."""
    first = AXES if axes == 2 else ("summary",)
    values = np.asarray(array.transpose(*first, ...).values, np.float64)
    return values.reshape(*values.shape[:axes], -1)


def _names(of_draws: "xarray.Dataset") -> tuple[str, ...]:
    """Of the parameters, one for each number."""
    return tuple(
        element(str(name), index)
        for name, array in of_draws.data_vars.items()
        for index in np.ndindex(*array.transpose("summary", ...).shape[1:])
    )


def _plain(table: dict[str, np.ndarray], prob: float | None) -> Moments:
    from arviz_base import rcParams

    names = tuple(name for name in table if name.endswith(BOUNDS) and name.startswith("eti"))
    within = float(rcParams["stats.ci_prob"] if prob is None else prob)
    levels = ((1 - within) / 2, (1 + within) / 2)[: len(names)]
    none = np.zeros((len(table["mean"]), 0))
    value = np.stack([table[name] for name in names], -1) if names else none
    ends = Ends(names, levels, value, np.full(value.shape, np.nan))
    mean, sd, error, error_sd = (table[name] for name in ARRAYS)
    return Moments(mean, sd, error, error_sd, ends)


def _columns(table: dict[str, np.ndarray], better: Moments) -> dict[str, np.ndarray]:
    """All columns in their order."""
    ours = {name: getattr(better, name) for name in ARRAYS}
    ends = dict(zip(better.ends.names, better.ends.value.T, strict=True))
    errors = {
        f"mcse_{name}": error
        for name, error in zip(better.ends.names, better.ends.mcse.T, strict=True)
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = (table["mcse_mean"] / better.mcse_mean) ** 2
        ess = (better.sd / better.mcse_mean) ** 2
    plain = {f"plain_{name}": table[name] for name in (*ours, *ends)}
    return {**table, **ours, **ends, **errors, "ess": ess, "worth": worth, **plain}


def _like(of_draws: "xarray.Dataset", columns: dict[str, np.ndarray]) -> "xarray.Dataset":
    """The columns as variables with the dimensions and coordinates they came with."""
    import xarray

    numbers, used, made = np.stack(list(columns.values())), 0, {}
    for name, array in of_draws.data_vars.items():
        one = array.transpose("summary", ...).isel(summary=0, drop=True)
        part = numbers[:, used : used + one.size].reshape(len(columns), *one.shape)
        made[name] = xarray.DataArray(part, dims=("summary", *one.dims), coords=one.coords)
        used += one.size
    return xarray.Dataset(made).assign_coords(summary=list(columns))


def _note(names: tuple[str, ...], columns: dict[str, np.ndarray], better: Moments) -> str:
    """What was gained, what limits it, and what to do, for a reader of the table."""
    worth, r_hat = columns["worth"], columns["r_hat"]
    usable = np.isfinite(worth)
    lines = []
    if better.controlled and usable.any():
        lines.append(_gained(names, np.where(usable, worth, np.nan)))
        lines.append(_advice(names, worth, r_hat))
    constant = len(worth) - better.controlled
    if constant:
        lines.append(f"{constant} of {len(worth)} are constant or not finite: as ArviZ has them.")
    if better.heavy:
        lines.append(no_mean(better.heavy))
    if better.audit is not None and not (better.audit.passed and better.audit.verified):
        lines.append(repr(better.audit))
        if not better.audit.verified:
            lines.append("Until then means and sds are shown to the digits of the plain ones.")
    return "\n".join(lines)


def _gained(names: tuple[str, ...], worth: np.ndarray) -> str:
    """What the means are worth; NaN for those that are left out."""
    least, median = int(np.nanargmin(worth)), float(np.nanmedian(worth))
    if worth[least] > PERFECT:
        return (
            "These means are as accurate as plain ones of more than a billion times as many draws."
        )
    said = f"These means are as accurate as plain ones of {times(median)} times as many draws"
    if np.isfinite(worth).sum() == 1:
        return f"{said}."
    return f"{said} (median; least for {names[least]}: {times(worth[least])})."


def _advice(names: tuple[str, ...], worth: np.ndarray, r_hat: np.ndarray) -> str:
    """What limits the errors, and what to do about it."""
    mixed = ~(r_hat > SUSPECT)
    if not mixed.all():
        worst = _first_of(names, ~mixed, -r_hat)
        return f"R-hat is above {SUSPECT} for {worst}: run the chains longer before you trust any error."
    poor = worth < LITTLE
    if not poor.any():
        return "Every mean gained: nothing else needs to be done."
    if poor.all():
        return "The control variates gain little here: only more draws make these means better."
    which = _first_of(names, poor, worth)
    return f"Less than {LITTLE:g} times for {which}: only more draws make these means better."


def _first_of(names: tuple[str, ...], which: np.ndarray, order: np.ndarray) -> str:
    """The first in an order of those that are meant, and how many more there are."""
    some = np.flatnonzero(which)
    first = names[int(some[np.argmin(order[some])])]
    more = len(some) - 1
    return first if not more else f"{first} and {more} other{'s' if more > 1 else ''}"
