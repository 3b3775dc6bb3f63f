"""The summary in the form that is asked for."""

from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import pandas
    import rich.table
    import xarray

type Format = Literal["wide", "long", "xarray", "rich"]
FORMATS = get_args(Format.__value__)


def output(
    whole: "xarray.Dataset", fmt: str, round_to: int | str | None
) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
    """A Dataset with a dimension `summary` as a Dataset, a frame or a table.

    Digits that follow the errors are a matter of display: only the wide formats have them.
    """
    from arviz_base import dataset_to_dataframe, rcParams

    automatic = round_to == "auto"
    digits = rcParams["stats.round_to"] if round_to is None else round_to
    exact = automatic or digits in ("none", "None")
    if fmt == "xarray":
        return whole if exact else _rounded(whole, digits)
    if fmt == "long":
        frame = whole.to_dataframe().reset_index().set_index("summary")
        frame.index = list(frame.index)
        frame = frame if exact else _rounded_frame(frame, digits, list(whole.data_vars))
        frame.attrs.update(whole.attrs)
        return frame
    frame = dataset_to_dataframe(whole, sample_dims=["summary"]).T
    if not exact:
        frame = _rounded_frame(frame, digits, list(frame.columns))
    frame.attrs.update(whole.attrs)
    return _shown(frame, automatic, fmt)


def _shown(
    frame: "pandas.DataFrame", automatic: bool, fmt: str
) -> "pandas.DataFrame | rich.table.Table":
    from ._digits import formatted
    from ._render import render

    if fmt == "rich":
        return render(frame)
    if not automatic:
        return frame
    from ._frame import SummaryFrame

    made = SummaryFrame(frame, fmt_map=formatted(frame))
    made.attrs.update(frame.attrs)
    return made


def _rounded(whole: "xarray.Dataset", digits: Any) -> "xarray.Dataset":
    import xarray
    from arviz_stats.base.stats_utils import round_num

    return xarray.apply_ufunc(round_num, whole, digits, vectorize=True, keep_attrs=True)


def _rounded_frame(frame: "pandas.DataFrame", digits: Any, columns: list) -> "pandas.DataFrame":
    from arviz_stats.base.stats_utils import round_num

    rounded = frame[columns].map(lambda number: round_num(number, digits))
    return frame.assign(**{str(name): rounded[name] for name in columns})
