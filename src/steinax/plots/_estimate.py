"""Forest plots of estimates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._require import require, usage
from .._show import digits
from ..estimation import Estimate, finest, same_draws, same_names
from ._style import (
    COLOURS,
    FONT,
    PLAIN,
    Axes,
    chosen_rows,
    height_of,
    legend_above,
    literal,
    name_rows,
    one_axes,
    refuse_others,
    worth_label,
)

APART = 0.17  # distance of the plain and the controlled interval from the middle of the row
TICK = {"markersize": 8, "markeredgewidth": 1.8}  # marker of a controlled value
LEAST = 3.0  # standard errors to each side that are always visible


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
    ax = one_axes(
        ax, 9.0 if numbers else 6.5, height_of(round(len(first) * max(1.0, len(drawn) / 3)))
    )
    size = name_rows(ax, first.names)
    spacing = 2 * APART * min(1.0, 2 / len(drawn))
    for place, group in enumerate(drawn):
        y = np.arange(len(first)) + (place - (len(drawn) - 1) / 2) * spacing
        plain = place == 0 and len(estimates) == 1
        mark = "o" if plain else "|"
        style = {"markersize": 5, "markerfacecolor": "white"} if plain else TICK
        ax.hlines(
            y,
            *group.ends.T,
            color=group.colour,
            linewidth=2.0 if plain else min(5.0, 10 / len(drawn)),
        )
        ax.plot(group.value, y, mark, color=group.colour, label=literal(group.label), **style)
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
    ax.set_xlabel(literal(_units(estimates, level, standardise)) + hidden, fontsize=FONT)
    legend_above(ax, len(drawn))
    if numbers:
        _print_columns(ax, _columns(estimates), size)
    return ax


def _chosen(
    estimate: Estimate | Mapping[str, Estimate], names: Sequence[str] | None
) -> tuple[dict[str, Estimate], int]:
    """Select the integrands to draw of each estimate, and count those of the first that are not drawn."""
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


def _units(estimates: dict[str, Estimate], level: float, standardise: bool) -> str:
    whose = f" of {next(iter(estimates))}" if len(estimates) > 1 else ""
    distance = f"distance from the plain average{whose}, in its standard errors"
    return f"{distance if standardise else 'value'} ({100 * level:g}% intervals)"


def _columns(estimates: dict[str, Estimate]) -> dict[str, list[str]]:
    """Format the numbers at the right: plain values and worth of one estimate, differences of several."""
    columns = {
        label: _with_errors(
            result.value, result.mcse, finest(result) * np.asarray(result.plain_mcse)
        )
        for label, result in estimates.items()
    }
    (name, first), *others = estimates.items()
    if not others:
        worth = ["" if np.isnan(w) else worth_label(w) for w in first.worth]
        return {
            **columns,
            "plain": _with_errors(first.plain_value, first.plain_mcse),
            "worth": worth,
        }
    for label, other in others:
        if not same_draws(other, first):
            difference = other - first
            columns[f"{label} - {name}"] = _with_errors(difference.value, difference.mcse)
    return columns


def _print_columns(ax: Axes, columns: dict[str, list[str]], size: float) -> None:
    """Draw columns of text at the right of the axes, a row for each integrand."""
    gap = 16.0
    right = gap / 2
    for heading, texts in columns.items():
        # digits are about 0.6 as wide as the font size
        right += 0.6 * size * max(map(len, (heading, *texts))) + gap
        style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
        top = {"xycoords": "axes fraction", "va": "bottom", **style}
        ax.annotate(literal(heading), (1, 1), (right, 4), **top)
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
    visuals = {"trunk": False, **settings.pop("visuals", {})}
    stats = {"twig": intervals, "point_estimate": points}
    collection = arviz_plots.plot_forest(
        data, combined=True, stats=stats, visuals=visuals, backend=backend, **settings
    )
    target = collection.get_target("mean", {"column": "forest"})
    names_of_rows = collection.get_target("mean", {"column": "labels"})
    arviz_plots.visuals.remove_axis(None, names_of_rows, axis="both")
    arviz_plots.visuals.labelled_x(None, target, text=_units(estimates, level, standardise))
    if collection.backend != "none":
        collection.add_legend("model")
    return collection
