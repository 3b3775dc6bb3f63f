import os
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from ..data import Sample
from ..data._variables import AXES, element
from ..estimation._audited import AuditMode
from ..families import AbstractFamily
from ._moments import Moments, controlled
from ._output import FORMATS, Format, output
from ._parameters import as_sample, parameters

if TYPE_CHECKING:
    import pandas
    import rich.table
    import xarray

    type Data = Sample | xarray.DataTree | str | os.PathLike[str]

type Kind = Literal["all", "stats", "diagnostics"]

QUICK = 1500  # draws beyond which kernels are not tried unless asked for
CHOICES = 2  # that are named
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
    quick: bool | None
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
    quick: bool | None = None,
    audit: AuditMode = "raise",
) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
    r"""The summary of every parameter that ArviZ gives, with control variates where they help.

    The columns of `arviz_stats.summary` come first, under its names: `mean`, `sd`, `mcse_mean` and
    `mcse_sd` are the controlled ones; the interval, `ess_bulk`, `ess_tail` and `r_hat` are of the draws, as
    ArviZ has them. Then come `ess`, the number of independent draws whose plain mean would be as accurate,
    $(\text{sd} / \text{mcse\_mean})^2$; `worth`, how many times as many draws of this sampler would be,
    $(\text{plain\_mcse\_mean} / \text{mcse\_mean})^2$; and `plain_mean`, `plain_sd`, `plain_mcse_mean` and
    `plain_mcse_sd`, ArviZ's own numbers. Where no control variate helps, the plain numbers stay.

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
        quick: whether only polynomials are tried, which takes about a second; by default if there are more
            than 1,500 draws. Kernels can be far better, and take longer.
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
    names = list(dataset)
    values = np.concatenate([_flat(dataset[name], 2) for name in names], axis=-1)
    plain = np.concatenate([_flat(of_draws[name], 1) for name in names], axis=-1)
    table = dict(zip(of_draws["summary"].values.tolist(), plain, strict=True))
    quick = sample.size > QUICK if quick is None else quick
    better = controlled(values, _names(of_draws), _plain(table), sample, family, quick, audit)
    columns = _columns(table, better)
    whole = _like(of_draws, {name: columns[name] for name in columns if _belongs(name, kind)})
    whole.attrs["steinax"] = _note(better, family, quick)
    return output(whole, fmt, round_to)


def _check(kind: str, fmt: str) -> None:
    if kind not in ("all", "stats", "diagnostics"):
        other = f"; {MEDIANS}, arviz_stats.summary has them" if "median" in kind else ""
        raise ValueError(f"kind={kind!r}{other}: use 'all', 'stats' or 'diagnostics'.")
    if fmt not in FORMATS:
        raise ValueError(f"fmt={fmt!r}: use one of {', '.join(map(repr, FORMATS))}.")


def _belongs(column: str, kind: str) -> bool:
    statistic = column.removeprefix("plain_") in ("mean", "sd") or column.endswith(BOUNDS)
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


def _plain(table: dict[str, np.ndarray]) -> Moments:
    kept = np.ones(len(table["mean"]), bool)
    return Moments(table["mean"], table["sd"], table["mcse_mean"], table["mcse_sd"], kept, kept)


def _columns(table: dict[str, np.ndarray], better: Moments) -> dict[str, np.ndarray]:
    """All columns in their order."""
    ours = {name: getattr(better, name) for name in ("mean", "sd", "mcse_mean", "mcse_sd")}
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = (table["mcse_mean"] / better.mcse_mean) ** 2
        ess = (better.sd / better.mcse_mean) ** 2
    plain = {f"plain_{name}": table[name] for name in ours}
    return {**table, **ours, "ess": ess, "worth": worth, **plain}


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


def _note(better: Moments, family: AbstractFamily | None, quick: bool) -> str:
    """What was done, for a reader of the table."""
    count = len(better.mean)
    lines = []
    if better.chosen:
        ways = Counter(name.partition(", mixed")[0] for name in better.chosen).most_common()
        named = [f"{times} by {name}" for name, times in ways[:CHOICES]]
        others = sum(times for _, times in ways[CHOICES:])
        lines.append(f"means: {', '.join([*named, *([f'{others} by others'] if others else [])])}")
        how = "quick, polynomials only: " if quick and family is None else ""
        lines.append(how + better.note)
    constant = count - len(better.chosen)
    if constant:
        lines.append(f"{constant} of {count} are constant or not finite: as ArviZ has them")
    wide = int(better.plain_sd.sum()) - constant
    if wide:
        lines.append(
            f"{wide} of {count} standard deviations are the plain ones: nothing was better"
        )
    if better.audit is not None:
        lines.append(repr(better.audit))
    return "\n".join(lines)
