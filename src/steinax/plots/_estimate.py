"""Estimates as forests of intervals."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._require import require
from .._show import digits
from ..estimation import Estimate
from ..estimation._result import same_draws, same_names
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
    times,
)

APART = 0.17  # rows between the plain interval and the controlled one, and the middle of the row
TICK = {"markersize": 8, "markeredgewidth": 1.8}  # of a controlled value
LEAST = 3.0  # standard errors to each side that are always seen


class Intervals(NamedTuple):
    """What is drawn in one colour: values and the ends of their intervals, a row for each integrand."""

    label: str
    colour: str
    value: np.ndarray
    ends: np.ndarray


def plot_estimate(
    estimate: Estimate | Mapping[str, Estimate],
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    numbers: bool = True,
    ax: Axes | None = None,
) -> Axes:
    r"""Estimates with their plain and controlled intervals, a row for each integrand: a forest.

    Expectations of different scales stand on one axis, as distances from the plain average in
    units of its standard error,

    $$ (\text{value} - \text{plain\_value}) / \text{plain\_mcse} , $$

    so all plain intervals look alike, and the controlled ones show by how much they are narrower and
    whether they lie where they should. A controlled interval that is too narrow to be seen still
    has its tick, and the numbers stand beside the rows.

    Several estimates of the same integrands are drawn side by side, without the plain ones, as distances
    from the plain average of the first. The numbers are then their values, and their differences from the
    first with the errors of `other - first`. These are of independent runs: estimates from the same draws
    are drawn without differences.

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
    found, more = _chosen(estimate, names)
    first = next(iter(found.values()))
    drawn = intervals_of(found, level, standardise)
    ax = one_axes(
        ax, 9.0 if numbers else 6.5, height_of(round(len(first) * max(1.0, len(drawn) / 3)))
    )
    size = name_rows(ax, first.names)
    apart = 2 * APART * min(1.0, 2 / len(drawn))
    for place, one in enumerate(drawn):
        y = np.arange(len(first)) + (place - (len(drawn) - 1) / 2) * apart
        plain = place == 0 and len(found) == 1
        mark = "o" if plain else "|"
        style = {"markersize": 5, "markerfacecolor": "white"} if plain else TICK
        ax.hlines(
            y, *one.ends.T, color=one.colour, linewidth=2.0 if plain else min(5.0, 10 / len(drawn))
        )
        ax.plot(one.value, y, mark, color=one.colour, label=literal(one.label), **style)
    if standardise:
        ends = np.abs(np.concatenate([np.r_[one.ends.ravel(), one.value, LEAST] for one in drawn]))
        reach = 1.08 * np.nanmax(np.where(np.isfinite(ends), ends, np.nan))
        ax.set_xlim(-reach, reach)
        ax.axvline(0.0, color=PLAIN, linewidth=0.8, linestyle=":", zorder=0)
    unseen = (
        f"\n{more} more integrands are not drawn: choose by names="
        if more and names is None
        else ""
    )
    ax.set_xlabel(literal(_units(found, level, standardise)) + unseen, fontsize=FONT)
    legend_above(ax, len(drawn))
    if numbers:
        _print_columns(ax, _columns(found), size)
    return ax


def _chosen(
    estimate: Estimate | Mapping[str, Estimate], names: Sequence[str] | None
) -> tuple[dict[str, Estimate], int]:
    """The integrands that are drawn, of each estimate by its label, and how many others the first has."""
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
        others = [same_names(first, one) for one in others]
    kept = [first.names[i] for i in rows]
    found = {label: one[kept] for label, one in zip(given, [first, *others], strict=True)}
    return found, len(first) - len(rows)


def intervals_of(found: dict[str, Estimate], level: float, standardise: bool) -> list[Intervals]:
    """What is drawn of each estimate, where it is drawn; of a single one the plain intervals too."""
    first = next(iter(found.values()))
    centre, unit = np.zeros((len(first), 1)), np.ones((len(first), 1))
    if standardise:
        centre, unit = first.plain_value[:, None], first.plain_mcse[:, None]
        unit = np.where(unit > 0, unit, np.nan)  # without an error there is no distance

    def placed(label: str, colour: str, value: np.ndarray, ends: np.ndarray) -> Intervals:
        return Intervals(
            label, colour, ((value[:, None] - centre) / unit)[:, 0], (ends - centre) / unit
        )

    drawn = [
        placed(label, colour, one.value, one.interval(level))
        for (label, one), colour in zip(found.items(), COLOURS, strict=False)
    ]
    if len(found) > 1:
        return drawn
    plain = placed("plain", PLAIN, first.plain_value, first.plain_interval(level))
    at_home = np.zeros(len(first)) if standardise else plain.value
    return [plain._replace(value=at_home), *drawn]


def _units(found: dict[str, Estimate], level: float, standardise: bool) -> str:
    whose = f" of {next(iter(found))}" if len(found) > 1 else ""
    distance = f"distance from the plain average{whose}, in its standard errors"
    return f"{distance if standardise else 'value'} ({100 * level:g}% intervals)"


def _columns(found: dict[str, Estimate]) -> dict[str, list[str]]:
    """The numbers at the right: of one estimate the plain ones and the worth, of several differences."""
    columns = {label: _all_sure(one.value, one.mcse) for label, one in found.items()}
    (name, first), *others = found.items()
    if not others:
        worth = ["" if np.isnan(w) else times(w) for w in first.worth]
        return {**columns, "plain": _all_sure(first.plain_value, first.plain_mcse), "worth": worth}
    for label, one in others:
        if not same_draws(one, first):
            apart = one - first
            columns[f"{label} - {name}"] = _all_sure(apart.value, apart.mcse)
    return columns


def _print_columns(ax: Axes, columns: dict[str, list[str]], size: float) -> None:
    """Columns of text at the right of the axes, a row for each integrand."""
    right = 8.0
    for heading, texts in columns.items():
        # digits are about 0.6 as wide as the letters are high
        right += 0.6 * size * max(map(len, (heading, *texts))) + 8
        style = {"fontsize": size, "ha": "right", "textcoords": "offset points"}
        top = {"xycoords": "axes fraction", "va": "bottom", **style}
        ax.annotate(literal(heading), (1, 1), (right, 4), **top)
        for y, text in enumerate(texts):
            where = ax.get_yaxis_transform()
            ax.annotate(text, (1, y), (right, 0), xycoords=where, va="center", **style)


def _all_sure(values: np.ndarray, errors: np.ndarray) -> list[str]:
    return [_sure(float(value), float(error)) for value, error in zip(values, errors, strict=True)]


def _sure(value: float, error: float) -> str:
    """A value and its error, both to two digits of the error."""
    if not np.isfinite(error):
        return f"{value:.6g} ± ?"
    return f"{digits(value, error)} ± {digits(error, error) if error > 1e-5 else f'{error:.1e}'}"


def plot_forest(
    estimate: Estimate | Mapping[str, Estimate],
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    backend: str | None = None,
    **settings: Any,
) -> Any:
    """The intervals of `plot_estimate` drawn by arviz-plots, for its backends: Plotly, Bokeh, ...

    Args:
        estimate: of one or more integrands; or several estimates by label, in a dict.
        names: of the integrands to draw, or of vectors of them; by default the first 60.
        level: the probability that intervals should cover.
        standardise: whether to draw distances from the plain averages, in their standard errors;
            otherwise the expectations themselves.
        backend: of arviz-plots: `"matplotlib"`, `"plotly"`, `"bokeh"` or `"none"`; its own default
            when not given.
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

    found, _ = _chosen(estimate, names)
    drawn = intervals_of(found, level, standardise)
    shown = list(next(iter(found.values())).names)
    own = {"model": [one.label for one in drawn], "integrand": shown}
    dims = ("model", "integrand")
    points = xr.Dataset({"mean": (dims, np.stack([one.value for one in drawn]))}, own)
    ends = {**own, "ci_bound": ["lower", "upper"]}
    intervals = xr.Dataset(
        {"mean": ((*dims, "ci_bound"), np.stack([one.ends for one in drawn]))}, ends
    )
    # plot_forest wants draws, though it has nothing to compute from them: one of each
    data = xr.DataTree.from_dict({"posterior": points.expand_dims(chain=1, draw=1)})
    settings = {"color": [one.colour for one in drawn], "labels": ["integrand"], **settings}
    visuals = {"trunk": False, **settings.pop("visuals", {})}
    stats = {"twig": intervals, "point_estimate": points}
    made = arviz_plots.plot_forest(
        data, combined=True, stats=stats, visuals=visuals, backend=backend, **settings
    )
    target = made.get_target("mean", {"column": "forest"})
    arviz_plots.visuals.labelled_x(None, target, text=_units(found, level, standardise))
    if made.backend != "none":
        made.add_legend("model")
    return made
