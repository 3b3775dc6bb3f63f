"""Forest plots of estimates."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._require import require, usage
from .._show import digits, shortened
from ..estimation import Estimate, finest, same_draws, same_names
from ._style import (
    COLOURS,
    FONT,
    LONGEST,
    PLAIN,
    Axes,
    chosen_rows,
    height_of,
    legend_above,
    literal,
    name_rows,
    one_axes,
    refuse_others,
    short_name,
    worth_label,
)

APART = 0.17  # distance of the plain and the controlled interval from the middle of the row
TICK = {"markersize": 8, "markeredgewidth": 1.8}  # marker of a controlled value
LEAST = 3.0  # standard errors to each side that are always visible
NARROW, WIDE = 6.5, 9.0  # inches of a figure without and with numbers, or more if needed
ROOM = 3.2  # inches that the intervals have at least
LABEL = 24  # most characters of the label of an estimate
LINE = 20  # most characters of a heading before its second line
CHARACTER = 0.6  # mean width of a character, in units of the font size
GAP = 16.0  # points between columns of numbers
MARKER = 45.0  # points of the marker of a legend's entry, with the space around it
LEADING = 1.3  # distance of lines, in units of the font size
FOREST_LINE = 2.5  # points: the width of intervals in `plot_forest`

type Columns = list[tuple[str, list[str]]]  # headings, and a text for each row


class Legend(NamedTuple):
    """The place of a legend: its number of columns, its rows, and how many points it is raised."""

    columns: int
    rows: int
    raised: float


class Intervals(NamedTuple):
    """Values and the ends of their intervals, a row for each integrand, drawn in one colour."""

    label: str
    colour: str
    value: np.ndarray
    ends: np.ndarray


@usage("Give an estimate, or a dict of several: plot_estimate(sx.estimate('mu', sample)).")
def plot_estimate(
    estimate: Estimate | Mapping[str, Estimate],
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    numbers: bool = True,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw a forest plot of estimates: plain and controlled intervals, a row for each integrand.

    Expectations of different scales share one axis, as distances from the plain average in
    units of its standard error,

    $$ (\text{value} - \text{plain\_value}) / \text{plain\_mcse} , $$

    so all plain intervals look alike, and the controlled ones show how much narrower they are and whether
    they agree with the plain ones. A controlled interval that is too narrow to be visible still has its
    tick, and the numbers are next to the rows.

    Several estimates of the same integrands are drawn side by side, without the plain ones, as distances
    from the plain average of the first. The numbers are then their values, and their differences from the
    first with the errors of `other - first`. Differences are for independent runs: estimates from the
    same draws are drawn without them.

    Args:
        estimate: of one or more integrands; or several estimates by label, in a dict.
        names: of the integrands to draw, or of vectors of them; by default the first 60.
        level: the probability that intervals should cover.
        standardise: whether to draw distances from the plain averages, in their standard errors;
            otherwise the expectations themselves, which should then be of one scale.
        numbers: whether to print values, errors and worth at the right.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_estimate
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
    >>> [label.get_text() for label in plot_estimate(est).get_yticklabels()]
    ['x[0]', 'x[1]']
    >>> plt.close()
    """
    estimates, more = _chosen(estimate, names)
    first = next(iter(estimates.values()))
    drawn = intervals_of(estimates, level, standardise)
    columns = _columns(estimates) if numbers else []
    labels = [short_name(group.label, LABEL) for group in drawn]
    units = literal(_units(estimates, level, standardise, between="\n"))
    room = max(72 * ROOM, _points([units])) + _width_of(columns)
    names_width = _points([short_name(name) for name in first.names])
    width = max(72 * (WIDE if numbers else NARROW), names_width + room)
    legend = _legend(labels, columns, width - names_width)
    height = height_of(round(len(first) * max(1.0, len(drawn) / 3)))
    above = legend.raised + (legend.rows - 1) * LEADING * FONT
    given, ax = ax, one_axes(ax, width / 72, height + above / 72)
    if given is not None:
        own_width = 72 * ax.get_window_extent().width / ax.figure.get_dpi()
        legend = _legend(labels, columns, own_width)
    size = name_rows(ax, first.names)
    _draw(ax, drawn, labels, with_plain=len(estimates) == 1)
    if standardise:
        ends = np.abs(
            np.concatenate([np.r_[group.ends.ravel(), group.value, LEAST] for group in drawn])
        )
        reach = 1.08 * np.nanmax(np.where(np.isfinite(ends), ends, np.nan))
        ax.set_xlim(-reach, reach)
        ax.axvline(0.0, color=PLAIN, linewidth=0.8, linestyle=":", zorder=0)
    hidden = (
        f"\n{more} more integrands are not drawn: choose by names="
        if more and names is None
        else ""
    )
    ax.set_xlabel(units + hidden, fontsize=FONT)
    legend_above(ax, legend.columns, legend.raised)
    _print_columns(ax, columns, size)
    return ax


def _draw(ax: Axes, drawn: Sequence[Intervals], labels: Sequence[str], with_plain: bool) -> None:
    """Draw all intervals; the first ones may be those of the plain averages."""
    spacing = 2 * APART * min(1.0, 2 / len(drawn))
    for place, (label, group) in enumerate(zip(labels, drawn, strict=True)):
        y = np.arange(len(group.value)) + (place - (len(drawn) - 1) / 2) * spacing
        plain = with_plain and place == 0
        width = 2.0 if plain else min(5.0, 10 / len(drawn))
        ax.hlines(y, *group.ends.T, color=group.colour, linewidth=width)
        mark = "o" if plain else "|"
        style = {"markersize": 5, "markerfacecolor": "white"} if plain else TICK
        ax.plot(group.value, y, mark, color=group.colour, label=label, **style)


def _points(texts: Sequence[str]) -> float:
    """Estimate the width of some texts, in points."""
    return CHARACTER * FONT * max(len(line) for text in texts for line in text.split("\n"))


def _width_of(columns: Columns) -> float:
    """Estimate the width of the numbers at the right, in points."""
    return sum((GAP + _points([heading, *texts]) for heading, texts in columns), 0.0)


def _legend(labels: Sequence[str], columns: Columns, room: float) -> Legend:
    """Place the legend above the intervals, or above the headings of the numbers if it is too wide.

    Args:
        labels: the entries of the legend.
        columns: the numbers at the right.
        room: the width of the intervals and the numbers, in points.
    """
    entries = [MARKER + _points([label]) for label in labels]
    raised = 0.0
    if columns and sum(entries) > room - _width_of(columns):
        raised = 4 + LEADING * FONT * max(heading.count("\n") + 1 for heading, _ in columns)
    fitting = len(labels) if sum(entries) <= room else max(1, int(room // max(entries)))
    return Legend(fitting, -(-len(labels) // fitting), raised)


def _chosen(
    estimate: Estimate | Mapping[str, Estimate], names: Sequence[str] | None
) -> tuple[dict[str, Estimate], int]:
    """Select the integrands to draw of each estimate, and count those of the first that are not drawn."""
    if isinstance(estimate, list | tuple):
        raise TypeError(
            f"{len(estimate)} estimates in a {type(estimate).__name__}: give them labels, in a dict such as "
            '{"first": estimate, "second": other}.'
        )
    if not isinstance(estimate, Mapping):
        refuse_others(estimate)
    given = {"controlled": estimate} if isinstance(estimate, Estimate) else dict(estimate)
    if not 1 <= len(given) <= len(COLOURS) or not all(
        isinstance(e, Estimate) for e in given.values()
    ):
        raise ValueError(
            f"{len(given)} estimates to draw side by side: give one to {len(COLOURS)} in a dict, by their "
            'labels: {"old": estimate, "new": other}.'
        )
    first, *others = given.values()
    rows = chosen_rows(first.names, names)
    if names is None:
        others = [same_names(first, other) for other in others]
    drawn = [first.names[i] for i in rows]
    estimates = {label: e[drawn] for label, e in zip(given, [first, *others], strict=True)}
    return estimates, len(first) - len(rows)


def intervals_of(
    estimates: dict[str, Estimate], level: float, standardise: bool
) -> list[Intervals]:
    """Compute the intervals to draw of each estimate; for a single one, its plain intervals too."""
    first = next(iter(estimates.values()))
    centre, unit = np.zeros((len(first), 1)), np.ones((len(first), 1))
    if standardise:
        centre, unit = first.plain_value[:, None], first.plain_mcse[:, None]
        unit = np.where(unit > 0, unit, np.nan)  # no distance without a standard error

    def placed(label: str, colour: str, value: np.ndarray, ends: np.ndarray) -> Intervals:
        return Intervals(
            label, colour, ((value[:, None] - centre) / unit)[:, 0], (ends - centre) / unit
        )

    drawn = [
        placed(label, colour, result.value, result.interval(level))
        for (label, result), colour in zip(estimates.items(), COLOURS, strict=False)
    ]
    if len(estimates) > 1:
        return drawn
    plain = placed("plain", PLAIN, first.plain_value, first.plain_interval(level))
    centres = np.zeros(len(first)) if standardise else plain.value
    return [plain._replace(value=centres), *drawn]


def _units(
    estimates: dict[str, Estimate], level: float, standardise: bool, between: str = " "
) -> str:
    whose = f" of {shortened(next(iter(estimates)), LABEL)}" if len(estimates) > 1 else ""
    distance = f"distance from the plain average{whose},{between}in its standard errors"
    return f"{distance if standardise else 'value'} ({100 * level:g}% intervals)"


def _columns(estimates: dict[str, Estimate]) -> Columns:
    """Format the numbers at the right: plain values and worth of one estimate, differences of several."""
    columns = [
        (short_name(label, LABEL), _controlled(result)) for label, result in estimates.items()
    ]
    (name, first), *others = estimates.items()
    if not others:
        worth = ["" if np.isnan(w) else worth_label(w) for w in first.worth]
        plain = _with_errors(first.plain_value, first.plain_mcse)
        return [*columns, ("plain", plain), ("worth", worth)]
    for label, other in others:
        if not same_draws(other, first):
            pair = [short_name(one, LABEL) for one in (label, name)]
            between = " - " if sum(map(len, pair)) <= LINE else "\n- "
            difference = other - first
            apart = _with_errors(difference.value, difference.mcse)
            columns.append((between.join(pair), apart))
    return columns


def _controlled(estimate: Estimate) -> list[str]:
    least = finest(estimate) * np.asarray(estimate.plain_mcse)
    return _with_errors(estimate.value, estimate.mcse, least)


def _print_columns(ax: Axes, columns: Columns, size: float) -> None:
    """Draw columns of text at the right of the axes, a row for each integrand."""
    right = GAP / 2
    for heading, texts in columns:
        right += _points([heading, *texts]) * size / FONT + GAP
        style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
        top = {"xycoords": "axes fraction", "va": "bottom", "ma": "right", **style}
        ax.annotate(heading, (1, 1), (right, 4), **top)
        for y, text in enumerate(texts):
            where = ax.get_yaxis_transform()
            ax.annotate(text, (1, y), (right, 0), xycoords=where, va="center", **style)


def _with_errors(
    values: np.ndarray, errors: np.ndarray, finest: np.ndarray | float = 0.0
) -> list[str]:
    rows = zip(values, errors, np.broadcast_to(finest, np.shape(values)), strict=True)
    return [_with_error(*map(float, row)) for row in rows]


def _with_error(value: float, error: float, finest: float) -> str:
    """Format a value and its error, both to two digits of the error; no digits below `finest`."""
    if not np.isfinite(error):
        return f"{value:.6g} ± ?"
    return f"{digits(value, max(error, finest))} ± {digits(error, error) if error > 1e-5 else f'{error:.1e}'}"


def plot_forest(
    estimate: Estimate | Mapping[str, Estimate],
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    backend: str | None = None,
    **settings: Any,
) -> Any:
    """Draw the intervals of `plot_estimate` with arviz-plots and its backends: Plotly, Bokeh, ...

    Args:
        estimate: of one or more integrands; or several estimates by label, in a dict.
        names: of the integrands to draw, or of vectors of them; by default the first 60.
        level: the probability that intervals should cover.
        standardise: whether to draw distances from the plain averages, in their standard errors;
            otherwise the expectations themselves.
        backend: of arviz-plots: `"matplotlib"`, `"plotly"`, `"bokeh"` or `"none"`; by default that
            of arviz-plots.
        settings: passed on to `arviz_plots.plot_forest`, such as `figure_kwargs`.

    Returns:
        The `PlotCollection` of arviz-plots; `.show()` and `.savefig(path)` are its methods.

    >>> import numpy as np, steinax as sx
    >>> from steinax.plots import plot_forest
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1))
    >>> plot_forest(est, backend="none").backend
    'none'
    """
    arviz_plots = require("arviz_plots", extra="plots")
    import xarray as xr

    estimates, _ = _chosen(estimate, names)
    drawn = intervals_of(estimates, level, standardise)
    shown = list(next(iter(estimates.values())).names)
    coords = {"model": [group.label for group in drawn], "integrand": shown}
    dims = ("model", "integrand")
    points = xr.Dataset({"mean": (dims, np.stack([group.value for group in drawn]))}, coords)
    ends = {**coords, "ci_bound": ["lower", "upper"]}
    intervals = xr.Dataset(
        {"mean": ((*dims, "ci_bound"), np.stack([group.ends for group in drawn]))}, ends
    )
    # plot_forest requires draws, though it computes nothing from them: one draw of each integrand
    data = xr.DataTree.from_dict({"posterior": points.expand_dims(chain=1, draw=1)})
    settings = {"color": [group.colour for group in drawn], "labels": ["integrand"], **settings}
    visuals = {"trunk": False, "twig": {}, **settings.pop("visuals", {})}
    if visuals["twig"] is not False:
        visuals["twig"] = {"width": FOREST_LINE, **visuals["twig"]}
    labeller = settings.setdefault("labeller", _short_labels(coords, backend))
    stats = {"twig": intervals, "point_estimate": points}
    collection = arviz_plots.plot_forest(
        data, combined=True, stats=stats, visuals=visuals, backend=backend, **settings
    )
    target = collection.get_target("mean", {"column": "forest"})
    names_of_rows = collection.get_target("mean", {"column": "labels"})
    arviz_plots.visuals.remove_axis(None, names_of_rows, axis="both")
    arviz_plots.visuals.labelled_x(None, target, text=_units(estimates, level, standardise))
    if collection.backend != "none":
        collection.add_legend("model", title="estimate", labeller=labeller)
    return collection


def _short_labels(coords: Mapping[str, Sequence[str]], backend: str | None) -> Any:
    """Return a labeller of arviz that shortens the names of integrands and estimates."""
    from arviz_base import rcParams
    from arviz_base.labels import MapLabeller

    short = short_name if (backend or rcParams["plot.backend"]) == "matplotlib" else shortened
    names: dict[Hashable, dict[Hashable, Hashable]] = {
        dim: {name: short(name, LONGEST) for name in all_of} for dim, all_of in coords.items()
    }
    return MapLabeller(coord_map=names)
