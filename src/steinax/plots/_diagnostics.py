"""Plots of audits, residuals, convergence and training."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np

from .._require import usage
from .._show import some_of
from ..auditing import AuditReport, Finding, Identities, audit, standardised, tested
from ..data import Integrands, IntegrandSpec, Sample, integrands, places, refuse_weights
from ..estimation import Estimate, estimate
from ..families import AbstractFamily
from ..fitting import ControlVariate, fit
from ._style import (
    CONTROLLED,
    FAINT,
    FONT,
    INK,
    PLAIN,
    Axes,
    AxesPair,
    chosen_rows,
    framed,
    ink,
    legend_above,
    one_axes,
    plain_log,
    short_name,
    two_axes,
)


@usage(
    "Give integrands, sample and a family, or what fit returned: "
    "plot_residuals('mu', sample, sx.Polynomial(2))."
)
def plot_residuals(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    control: ControlVariate | AbstractFamily,
    *,
    name: str | None = None,
    ax: AxesPair | None = None,
) -> np.ndarray:
    r"""Plot f against a fitted control variate, and the residuals $f - g$ on a separate scale.

    At the left, $f$ is drawn against $g + c$ with $c$ the mean of $f - g$: a perfect control variate has
    all draws on the line. At the right are the distances from the line. The titles give the
    variances; draws of a chain are dependent, so `worth` need not be their ratio.

    Args:
        f: the integrands.
        sample: the draws and scores.
        control: a control variate of these integrands, best shown on held-out draws; or a
            family, which is fitted to the first half of each chain and shown on the second.
        name: of the integrand to draw; the first by default.
        ax: two axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_residuals
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> left, right = plot_residuals("x", sx.Sample(x, -x), sx.Polynomial(1), name="x[1]")
    >>> left.get_ylabel()
    'x[1]'
    >>> plt.close()
    """
    values, g, shown = _fitted(f, sample, control, name)
    residual = values - g
    fitted = g + residual.mean()
    left, right = two_axes(ax, 9.0, 4.2)
    dots = {"markersize": 3, "linestyle": "none", "marker": "o", "alpha": 0.5, "rasterized": True}
    dots |= {"markeredgewidth": 0}
    left.plot(fitted, values, color=PLAIN, **dots)
    both = np.r_[fitted, values]
    ends = np.array([both.min(), both.max()])
    left.plot(ends, ends, color=ink(), linewidth=1.0, zorder=3)
    right.plot(fitted, residual - residual.mean(), color=CONTROLLED, **dots)
    right.axhline(0.0, color=ink(), linewidth=1.0, zorder=3)
    for axes, label in ((left, short_name(shown)), (right, "residual: f - g - c")):
        axes.set_xlabel("control variate: g + c")
        axes.set_ylabel(label)
        framed(axes)
        axes.tick_params(color=FAINT)
    before, after = values.var(), residual.var()
    left.set_title(f"f: variance {before:.3g}", fontsize=FONT + 1)
    right.set_title(f"f - g: variance {after:.3g}{_share_text(before, after)}", fontsize=FONT + 1)
    return np.array([left, right], dtype=object)


def _fitted(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    control: ControlVariate | AbstractFamily,
    name: str | None,
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return one integrand and its control variate on the draws to show, and the integrand's name."""
    refuse_weights(sample, "plot_residuals")
    wanted = integrands(f, sample)
    row = chosen_rows(wanted.names, name)[0]
    shown = wanted.names[row]
    values = wanted.values[..., row : row + 1]
    if isinstance(control, AbstractFamily):
        half = sample.length // 2
        first, second = sample[:, :half], sample[:, half:]
        fitted_to = Integrands(values[:, :half], (shown,))
        control, sample, values = fit(fitted_to, first, control), second, values[:, half:]
    elif not isinstance(control, ControlVariate):
        raise TypeError(
            f"the third argument is a {type(control).__name__}: give a family such as Polynomial(2), or "
            "the ControlVariate that fit returned."
        )
    if shown not in control.names:
        raise ValueError(
            f"the control variate is of {', '.join(control.names[:10])}, not of {shown!r}: give the "
            "integrands it was fitted to, or choose one of them by name=."
        )
    g = control(sample.x, sample.score)[:, control.names.index(shown)]
    return np.asarray(values, np.float64).ravel(), np.asarray(g, np.float64), shown


def _share_text(before: float, after: float) -> str:
    """Describe the remaining share of the variance."""
    if before <= 0:
        return ""
    share = after / before
    return f", 1/{1 / share:,.3g} of it" if 0 < share < 0.5 else f", {100 * share:.3g}% of it"


DIMENSIONS = 20  # most dimensions drawn: those with the largest deviations
WRITTEN = 12  # most dimensions for which every cell has its number
STRONGEST = 2.0  # end of the colour scale, in units of the limit
TITLE = 12.0  # most characters of a line of the title, for each inch of the axes
NAMED = 2  # most columns named in the title
MISTAKES = {  # kinds of findings, in words
    "sign": "wrong sign",
    "lag": "scores of other draws",
    "order": "columns in another order",
    "chains": "scores of other chains",
    "jacobian": "missing Jacobian",
    "constrained": "constrained draws",
    "tempered": "scores off by a factor",
    "term": "missing term",
    "clipped": "clipped gradients",
    "boundary": "draws at a boundary",
    "scores": "wrong scores",
    "axes": "wrong order of axes",
    "duplicate": "chains with the same draws",
    "stuck": "stuck chain",
    "divergences": "many divergences",
    "weights": "heavy-tailed weights",
}


def plot_audit(
    sample: Sample, *, names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    r"""Plot the Stein moments of a sample as a matrix, to check its scores.

    With standardised draws $y$ and their scores $s$, correct scores give $E[s_j] = 0$, the top row,
    and $E[y_i s_j] + 1_{i = j} = 0$, the matrix. Colours and numbers are deviations in units of what
    the audit allows: beyond 1 an identity fails, and its cell has a frame. A wrong sign shows on the
    diagonal, swapped columns next to it, a missing Jacobian in the top row. The title has the verdict of
    `audit`, which also tests pairs of whitened draws and bounded functions, and prints the details.

    Args:
        sample: draws and scores.
        names: of the dimensions to draw; by default all, or the 20 with the largest deviations.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_audit
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> print(plot_audit(sx.Sample(x, x)).get_title())
    audit failed: wrong sign
    see sx.audit(sample)
    >>> plt.close()
    """
    refuse_weights(sample, "plot_audit")
    draws, scores = (np.asarray(array, np.float64) for array in (sample.draws, sample.scores))
    _refuse_constant(sample)
    with np.errstate(all="ignore"):  # overflow gives NaN, which fails
        y, scale = standardised(draws)
        s = scores * scale
        columns = _columns(sample, y, s, names)
        y, s = y[..., columns], s[..., columns]
        moments = stein_moments(y, s)
    count = len(columns)
    ax = one_axes(ax, 2.6 + 0.42 * max(count, 5), 1.9 + 0.36 * max(count, 5))
    shape = (count + 1, count)
    signed = (np.sign(moments.deviation) * moments.strength).reshape(shape)
    image = ax.imshow(
        signed, cmap="PuOr", vmin=-STRONGEST, vmax=STRONGEST, aspect="auto", rasterized=True
    )
    _mark(ax, signed)
    labelled = _labels(sample)
    _name_cells(ax, [short_name(labelled[i], 22) for i in columns])
    _scale(ax, image)
    more = f"; {count} of {sample.dim} dimensions" if count < sample.dim else ""
    inches = ax.get_window_extent().width / ax.figure.get_dpi()
    verdict = _verdict(audit(sample), sample.dim, max(int(TITLE * inches), 20))
    ax.set_title(verdict + more, fontsize=FONT + 1)
    return ax


def stein_moments(y: np.ndarray, s: np.ndarray) -> Identities:
    """Test the means of scores, and of products of each draw with each score: (1 + dim) * dim."""
    dim = y.shape[2]
    identity = np.eye(dim)
    return tested([s, *(y[..., i : i + 1] * s + identity[i] for i in range(dim))], dim)


def _refuse_constant(sample: Sample) -> None:
    if sample.length < 8 or np.any(np.ptp(sample.x, axis=0) == 0):
        raise ValueError(
            f"{sample} has fewer than 8 draws in each chain, or a dimension that never moves: give longer "
            "chains, and leave constants out."
        )


def _columns(
    sample: Sample, y: np.ndarray, s: np.ndarray, names: Sequence[str] | None
) -> list[int]:
    """Return the dimensions to draw: those named, or those with the largest deviations."""
    if names is not None:
        wanted = [names] if isinstance(names, str) else list(names)
        known = {
            name: i
            for all_names in (sample.names, _labels(sample))
            for i, name in enumerate(all_names)
        }
        for name in wanted:
            if name not in known:
                few = ", ".join(sample.names[:10])
                raise ValueError(f"no dimension is called {name!r}: choose among {few}.")
        return [known[name] for name in wanted]
    if sample.dim <= DIMENSIONS:
        return list(range(sample.dim))
    strength = tested([s, y * s + 1.0], sample.dim).strength.reshape(2, -1).max(axis=0)
    return sorted(np.argsort(-np.nan_to_num(strength, nan=np.inf))[:DIMENSIONS].tolist())


def _labels(sample: Sample) -> list[str]:
    """Name the dimensions, those that are variables of the model by their labels: `z[Oslo]` for `z[0]`."""
    shown = list(sample.names)
    variables = sample.variables
    if variables is None:
        return shown
    for base in {name.partition("[")[0] for name in sample.names}:
        columns, labelled = places(base, sample.names), variables.labelled(base)
        if labelled is not None and np.array_equal(sample.draws[..., columns], labelled[0]):
            for i, name in zip(columns, labelled[1], strict=True):
                shown[i] = name
    return shown


def _mark(ax: Axes, signed: np.ndarray) -> None:
    """Frame the cells that fail, and write the deviations where there is room."""
    failing = ~(np.abs(signed) <= 1.0)
    for i, j in np.argwhere(failing):
        ax.add_patch(_frame(int(j), int(i)))
    if signed.shape[1] <= WRITTEN:
        for (i, j), value in np.ndenumerate(signed):
            ink = "white" if abs(signed[i, j]) > 1.4 else INK
            text = f"{round(value, 1) + 0.0:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=FONT - 1.5, color=ink)
    ax.axhline(0.5, color=INK, linewidth=1.2)


def _frame(column: int, row: int) -> Any:
    """Return a frame inside a cell, dark on a white line, so that it is visible on any colour."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    corner, side = (column - 0.42, row - 0.42), 0.84
    outline = [withStroke(linewidth=4.0, foreground="white")]
    style = {"fill": False, "edgecolor": INK, "linewidth": 1.5, "path_effects": outline}
    return Rectangle(corner, side, side, **style)  # type: ignore[arg-type]


def _name_cells(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names) + 1), ["1 (mean score)", *names], fontsize=FONT)
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(names)), names, fontsize=FONT, **slanted)
    ax.set_xlabel("score of")
    ax.set_ylabel("times draw of")
    ax.tick_params(length=0)


def _scale(ax: Axes, image: object) -> None:
    """Draw the colour scale, with the limits marked on it."""
    bar = ax.figure.colorbar(image, ax=ax, extend="both", pad=0.02)  # type: ignore[arg-type]
    bar.ax.axhline(1.0, color=INK, linewidth=1.6)
    bar.ax.axhline(-1.0, color=INK, linewidth=1.6)
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["-2", "-1", "0", "1", "2"])
    bar.ax.tick_params(labelsize=FONT)
    bar.set_label("deviation, as a multiple of the allowed one", fontsize=FONT)


def _verdict(report: AuditReport, dim: int, width: int) -> str:
    """Describe the outcome of an audit in a title, of several lines if it failed."""
    if report.passed:
        return "audit passed"
    mistakes = ", ".join(_mistake(problem, dim) for problem in report.fatal)
    return f"{fill(f'audit failed: {mistakes}', width)}\nsee sx.audit(sample)"


def _mistake(problem: Finding, dim: int) -> str:
    """Describe a finding in a few words, with its columns if it is about some of them."""
    words = MISTAKES.get(problem.kind, problem.kind)
    if not 0 < len(problem.columns) < dim:
        return words
    columns = [short_name(name, 18) for name in problem.columns]
    return f"{words} ({some_of(columns, NAMED)})"


SIZES = 6  # number of sizes, each twice the one before
FEWEST = 10  # least draws of each chain in the smallest size


def plot_convergence(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    name: str | None = None,
    sizes: Sequence[int] | None = None,
    level: float = 0.95,
    truth: float | int | None = None,
    ax: AxesPair | None = None,
) -> np.ndarray:
    r"""Plot plain and controlled estimates and their errors against the number of draws.

    Each size is estimated anew from the first draws of every chain. At the right are the Monte Carlo
    standard errors: plain ones fall as $1/\sqrt n$, those with control variates often faster, since
    the fit improves as well. If the truth is given, the actual errors are drawn as crosses.

    Args:
        f: the integrands.
        sample: the draws and scores.
        family: of control variates; by default chosen for each size, which takes seconds each.
        name: of the integrand to draw; the first by default.
        sizes: numbers of draws of all chains together; by default the length of the chains and
            halves of it.
        level: the probability that intervals should cover.
        truth: the exact expectation, if known.
        ax: two axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_convergence
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> pair = plot_convergence("x", sx.Sample(x, -x), sx.Polynomial(1), sizes=[200, 400], truth=0)
    >>> pair[1].get_yscale()
    'log'
    >>> plt.close()
    """
    wanted = integrands(f, sample)
    row = chosen_rows(wanted.names, name)[0]
    shown = wanted.names[row]
    lengths = _lengths(sample, sizes)
    estimates = _estimates(wanted.values[..., row : row + 1], shown, sample, family, lengths)
    n = sample.chains * np.array(lengths)
    left, right = two_axes(ax, 9.5, 4.2)
    for prefix, colour, marker, shift, label in (
        ("plain_", PLAIN, "o", 0.97, "plain"),
        ("", CONTROLLED, "D", 1.03, "controlled"),
    ):
        value = np.array([getattr(est, f"{prefix}value")[0] for est in estimates])
        mcse = np.array([getattr(est, f"{prefix}mcse")[0] for est in estimates])
        ends = np.array([getattr(est, f"{prefix}interval")(level)[0] for est in estimates])
        style = {"color": colour, "markersize": 5, "markerfacecolor": "white" if prefix else colour}
        left.vlines(shift * n, *ends.T, color=colour, linewidth=2.0)
        left.plot(shift * n, value, marker, label=label, **style)
        right.plot(n, mcse, f"{marker}-", label=label, **style)
        if truth is not None:
            cross = {"color": colour, "markersize": 7, "linestyle": "none", "markeredgewidth": 1.5}
            right.plot(
                n, np.abs(value - truth), marker="x", label=f"actual error, {label}", **cross
            )
    if truth is not None:
        left.axhline(truth, color=ink(), linewidth=1.0, linestyle="--", label="truth", zorder=0)
    _finish(left, right, n, short_name(shown), level)
    return np.array([left, right], dtype=object)


def _lengths(sample: Sample, sizes: Sequence[int] | None) -> list[int]:
    """Return the numbers of draws of each chain, the smallest first; by default up to whole chains."""
    if sizes is None:
        halves = [sample.length // 2**power for power in reversed(range(SIZES))]
        return sorted({length for length in halves if length >= FEWEST} or {sample.length})
    lengths = sorted({int(size) // sample.chains for size in sizes})
    if not lengths or lengths[0] < 4 or lengths[-1] > sample.length:
        raise ValueError(
            f"sizes {list(sizes)} for {sample.chains} chains of {sample.length} draws: give total "
            f"numbers of draws, over all chains, from {4 * sample.chains} to {sample.size}."
        )
    return lengths


def _estimates(
    values: np.ndarray,
    name: str,
    sample: Sample,
    family: AbstractFamily | None,
    lengths: Sequence[int],
) -> list[Estimate]:
    """Estimate from the first draws of every chain, for each length; only the longest is audited."""
    estimates = []
    for length in reversed(lengths):
        f, first = Integrands(values[:, :length], (name,)), sample[:, :length]
        estimates.append(estimate(f, first, family, audit="off" if estimates else "raise"))
    return estimates[::-1]


def _finish(left: Axes, right: Axes, n: np.ndarray, name: str, level: float) -> None:
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_xlim(n[0] / 1.3, n[-1] * 1.3)
        ax.set_xticks(n, [f"{size:,}" for size in n], fontsize=FONT)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("draws, all chains together")
        framed(ax)
    plain_log(right)
    right.set_ylabel("Monte Carlo standard error")
    left.set_ylabel(f"{name}: estimate, {100 * level:g}% interval")
    legend_above(left, 3)
    legend_above(right, 2)


DASHES = ("--", ":", "-.")  # for the rates that were not chosen


def plot_training(control: ControlVariate, *, ax: AxesPair | None = None) -> np.ndarray:
    """Plot the held-out loss and the learning rate of training by epoch.

    The rate that was kept is drawn in colour, the others in grey. A dot marks the best iterate, which
    is the one that was kept. The rate of a user-defined optimiser is not known here.

    Args:
        control: a control variate that was trained: a network, or any family by
            `Stochastic(precondition=False)`.
        ax: two axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_training
    >>> x = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> solver = sx.Stochastic(epochs=3, precondition=False)
    >>> g = sx.fit("x", sx.Sample(x, -x), sx.Polynomial(1), solver=solver)
    >>> plot_training(g)[0].get_ylabel()
    'held-out loss'
    >>> plt.close()
    """
    losses, rates, chosen = _runs(control)
    shape = {"nrows": 2, "ncols": 1, "sharex": True, "height_ratios": [3, 1.4]}
    upper, lower = two_axes(ax, 7.0, 5.0, **shape)
    epochs = np.arange(1, losses.shape[1] + 1)
    others = [run for run in range(len(losses)) if run != chosen]
    for run in [*others, chosen]:
        style = {"color": CONTROLLED, "linewidth": 2.2, "zorder": 3}
        if run != chosen:
            dash = DASHES[others.index(run) % len(DASHES)]
            style = {"color": "#777777", "linewidth": 1.3, "linestyle": dash}
        kept = ", kept" if run == chosen else ""
        label = "the given optimiser" if rates is None else f"rate {rates[run, 0]:.2g}{kept}"
        upper.plot(epochs, losses[run], label=label, **style)
        if rates is not None:
            lower.plot(epochs, rates[run], **style)
    if np.any(np.isfinite(losses[chosen])):
        best = int(np.nanargmin(losses[chosen]))
        upper.plot(epochs[best], losses[chosen, best], "o", color=CONTROLLED, zorder=4)
    _finish_losses(upper, lower, losses, rates is not None)
    return np.array([upper, lower], dtype=object)


def _runs(control: ControlVariate) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the losses (run, epoch), the rates (run, epoch) and the index of the run that was kept."""
    if not isinstance(control, ControlVariate):
        raise TypeError(
            f"plot_training draws a ControlVariate, not a {type(control).__name__}: give what fit returned."
        )
    if control.training is not None:
        training = control.training
        rates = None if training.rates is None else np.asarray(training.rates)
        return np.asarray(training.losses), rates, int(training.chosen)
    if control.history is not None:
        return np.asarray(control.history)[None], None, 0
    raise ValueError(
        f"{control} was fitted without epochs, so there is no curve: fit a Network, or give "
        "solver=Stochastic(precondition=False)."
    )


def _finish_losses(upper: Axes, lower: Axes, losses: np.ndarray, known: bool) -> None:
    if np.nanmin(losses, initial=np.inf) > 0:
        plain_log(upper)
    upper.set_ylabel("held-out loss")
    legend_above(upper, min(len(losses), 3))
    lower.set_xlabel("epoch")
    lower.set_ylabel("learning rate")
    if not known:
        style = {"ha": "center", "va": "center", "fontsize": FONT, "color": ink()}
        lower.text(0.5, 0.5, "the optimiser's own", transform=lower.transAxes, **style)
        lower.set_yticks([])
    for ax in (upper, lower):
        framed(ax)
        ax.tick_params(color=FAINT)
