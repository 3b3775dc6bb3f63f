"""Pictures of the audit, of residuals, of convergence and of training."""

from collections.abc import Sequence

import numpy as np

from ..auditing import AuditReport, audit
from ..auditing._identities import Identities, standardised, tested
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..data._weights import refuse_weights
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
    legend_above,
    one_axes,
    plain_log,
    shortened,
    two_axes,
)


def plot_rest(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    control: ControlVariate | AbstractFamily,
    *,
    name: str | None = None,
    ax: AxesPair | None = None,
) -> np.ndarray:
    r"""The fitted control variate against f, and what is left: $f - g$, in a scale of its own.

    At the left, $f$ stands over $g + c$ with $c$ the mean of $f - g$: a perfect control variate has
    all draws on the line. At the right are the distances from the line. The titles give the
    variances; draws of a chain depend on each other, so `worth` need not be their ratio.

    Args:
        f: the integrands.
        sample: the draws and scores.
        control: a control variate of these integrands, best shown on draws it was not fitted to; or
            a family, which is fitted to the first half of each chain and shown on the second.
        name: of the integrand to draw; the first by default.
        ax: two axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_rest
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> left, right = plot_rest("x", sx.Sample(x, -x), sx.Polynomial(1), name="x[1]")
    >>> left.get_ylabel()
    'x[1]'
    >>> plt.close()
    """
    values, g, shown = _fitted(f, sample, control, name)
    rest = values - g
    fitted = g + rest.mean()
    left, right = two_axes(ax, 9.0, 4.2)
    dots = {"markersize": 3, "linestyle": "none", "marker": "o", "alpha": 0.5, "rasterized": True}
    dots |= {"markeredgewidth": 0}
    left.plot(fitted, values, color=PLAIN, **dots)
    both = np.r_[fitted, values]
    ends = np.array([both.min(), both.max()])
    left.plot(ends, ends, color=INK, linewidth=1.0, zorder=3)
    right.plot(fitted, rest - rest.mean(), color=CONTROLLED, **dots)
    right.axhline(0.0, color=INK, linewidth=1.0, zorder=3)
    for axes, label in ((left, shortened(shown)), (right, "what is left: f - g - c")):
        axes.set_xlabel("control variate: g + c")
        axes.set_ylabel(label)
        framed(axes)
        axes.tick_params(color=FAINT)
    before, after = values.var(), rest.var()
    left.set_title(f"f: variance {before:.3g}", fontsize=FONT + 1)
    right.set_title(f"f - g: variance {after:.3g}{_part(before, after)}", fontsize=FONT + 1)
    return np.array([left, right], dtype=object)


def _fitted(
    f: IntegrandSpec | Integrands,
    sample: Sample,
    control: ControlVariate | AbstractFamily,
    name: str | None,
) -> tuple[np.ndarray, np.ndarray, str]:
    """One integrand and its control variate on the draws to show, and the integrand's name."""
    refuse_weights(sample, "plot_rest")
    wanted = integrands(f, sample)
    row = chosen_rows(wanted.names, name)[0]
    shown = wanted.names[row]
    values = wanted.values[..., row : row + 1]
    if isinstance(control, AbstractFamily):
        half = sample.length // 2
        first, second = sample[:, :half], sample[:, half:]
        one = Integrands(values[:, :half], (shown,))
        control, sample, values = fit(one, first, control), second, values[:, half:]
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


def _part(before: float, after: float) -> str:
    """How much of the variance is left, in words."""
    if before <= 0:
        return ""
    share = after / before
    return f", 1/{1 / share:,.3g} of it" if 0 < share < 0.5 else f", {100 * share:.3g}% of it"


DIMENSIONS = 20  # drawn at most: the worst ones
WRITTEN = 12  # dimensions up to which every cell has its number
STRONGEST = 2.0  # of the scale of colours, in units of what is allowed


def plot_audit(
    sample: Sample, *, names: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    r"""The Stein moments of a sample as a matrix: are the scores those of the draws?

    With standardised draws $y$ and their scores $s$, right scores give $E[s_j] = 0$, the row on top,
    and $E[y_i s_j] + 1_{i = j} = 0$, the matrix. Colours are deviations in units of what the audit
    allows: beyond 1, marked on the scale, an identity fails, and its cell has a frame. Numbers are
    deviations in standard errors. A wrong sign shows on the diagonal, swapped columns beside it,
    a missing Jacobian in the top row. The title is the verdict of `audit`, which tests more than
    is drawn here: pairs of whitened draws and bounded functions, too.

    Args:
        sample: draws and scores.
        names: of the dimensions to draw; by default all, or the 20 with the largest deviations.
        ax: axes to draw on.

    >>> import numpy as np, steinax as sx, matplotlib.pyplot as plt
    >>> from steinax.plots import plot_audit
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> plot_audit(sx.Sample(x, x)).get_title()
    'audit failed: sign'
    >>> plt.close()
    """
    refuse_weights(sample, "plot_audit")
    draws, scores = (np.asarray(one, np.float64) for one in (sample.draws, sample.scores))
    _refuse_what_stands_still(sample)
    with np.errstate(all="ignore"):  # what overflows is not a number, and fails
        y, scale = standardised(draws)
        s = scores * scale
        columns = _columns(sample, y, s, names)
        y, s = y[..., columns], s[..., columns]
        found = stein_moments(y, s)
    count = len(columns)
    ax = one_axes(ax, 2.6 + 0.42 * max(count, 5), 1.9 + 0.36 * max(count, 5))
    shape = (count + 1, count)
    signed = (np.sign(found.deviation) * found.strength).reshape(shape)
    image = ax.imshow(
        signed, cmap="PuOr", vmin=-STRONGEST, vmax=STRONGEST, aspect="auto", rasterized=True
    )
    errors = (found.deviation / found.error).reshape(shape)
    _mark(ax, signed, errors)
    _name_cells(ax, [shortened(sample.names[i], 22) for i in columns])
    _scale(ax, image)
    more = f"; {count} of {sample.dim} dimensions" if count < sample.dim else ""
    ax.set_title(_verdict(audit(sample)) + more, fontsize=FONT + 1)
    return ax


def stein_moments(y: np.ndarray, s: np.ndarray) -> Identities:
    """The means of scores, then of products of each dimension with each score: (1 + dim) * dim."""
    dim = y.shape[2]
    one = np.eye(dim)
    return tested([s, *(y[..., i : i + 1] * s + one[i] for i in range(dim))], dim)


def _refuse_what_stands_still(sample: Sample) -> None:
    if sample.length < 8 or np.any(np.ptp(sample.x, axis=0) == 0):
        raise ValueError(
            f"{sample} has fewer than 8 draws in each chain, or a dimension that never moves: give longer "
            "chains, and leave constants out."
        )


def _columns(
    sample: Sample, y: np.ndarray, s: np.ndarray, names: Sequence[str] | None
) -> list[int]:
    """Which dimensions are drawn, in the order of the sample."""
    if names is not None:
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in sample.names:
                few = ", ".join(sample.names[:10])
                raise ValueError(f"no dimension is called {name!r}: choose among {few}.")
        return [sample.names.index(name) for name in wanted]
    if sample.dim <= DIMENSIONS:
        return list(range(sample.dim))
    own = tested([s, y * s + 1.0], sample.dim).strength.reshape(2, -1).max(axis=0)
    return sorted(np.argsort(-np.nan_to_num(own, nan=np.inf))[:DIMENSIONS].tolist())


def _mark(ax: Axes, signed: np.ndarray, errors: np.ndarray) -> None:
    """A frame around what fails, and the deviations in standard errors where there is room."""
    failing = ~(np.abs(signed) <= 1.0)
    for i, j in np.argwhere(failing):
        frame = {"fill": False, "edgecolor": INK, "linewidth": 1.6}
        ax.add_patch(_rectangle(j - 0.46, i - 0.46, 0.92, **frame))
    if signed.shape[1] <= WRITTEN:
        for (i, j), value in np.ndenumerate(errors):
            ink = "white" if abs(signed[i, j]) > 1.4 else INK
            text = f"{round(value, 1) + 0.0:.1f}" if abs(value) < 99.95 else f"{value:.0f}"
            ax.text(j, i, text, ha="center", va="center", fontsize=FONT - 1.5, color=ink)
    ax.axhline(0.5, color=INK, linewidth=1.2)


def _rectangle(x: float, y: float, side: float, **style: object):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), side, side, **style)  # type: ignore[arg-type]


def _name_cells(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names) + 1), ["1 (mean score)", *names], fontsize=FONT)
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(names)), names, fontsize=FONT, **slanted)
    ax.set_xlabel("score of")
    ax.set_ylabel("times draw of")
    ax.tick_params(length=0)


def _scale(ax: Axes, image: object) -> None:
    """The scale of colours, with what is allowed marked on it."""
    bar = ax.figure.colorbar(image, ax=ax, extend="both", pad=0.02)  # type: ignore[arg-type]
    bar.ax.axhline(1.0, color=INK, linewidth=1.6)
    bar.ax.axhline(-1.0, color=INK, linewidth=1.6)
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["-2", "-1, the limit", "0", "1, the limit", "2"])
    bar.ax.tick_params(labelsize=FONT)
    bar.set_label("deviation, in units of what is allowed", fontsize=FONT)


def _verdict(report: AuditReport) -> str:
    if report.passed:
        return "audit passed"
    return f"audit failed: {', '.join(problem.kind for problem in report.fatal)}"


SIZES = 6  # each twice as large as the one before
FEWEST = 10  # draws of each chain in the smallest of them


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
    r"""Plain and controlled estimates as draws accumulate: values with intervals, and their errors.

    Each size is estimated anew from the first draws of every chain. At the right are the Monte Carlo
    standard errors: plain ones fall as $1/\sqrt n$, those with control variates often faster, since
    the fit gets better, too. With the truth given, the errors that were made are drawn as crosses.

    Args:
        f: the integrands.
        sample: the draws and scores.
        family: of control variates; by default chosen anew for each size, which takes seconds each.
        name: of the integrand to draw; the first by default.
        sizes: numbers of draws of all chains together; by default the length of the chains and
            halves of it.
        level: the probability that intervals should cover.
        truth: the expectation, where it is known.
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
    found = _estimates(wanted.values[..., row : row + 1], shown, sample, family, lengths)
    n = sample.chains * np.array(lengths)
    left, right = two_axes(ax, 9.5, 4.2)
    for prefix, colour, marker, shift, label in (
        ("plain_", PLAIN, "o", 0.97, "plain"),
        ("", CONTROLLED, "D", 1.03, "controlled"),
    ):
        value = np.array([getattr(est, f"{prefix}value")[0] for est in found])
        mcse = np.array([getattr(est, f"{prefix}mcse")[0] for est in found])
        ends = np.array([getattr(est, f"{prefix}interval")(level)[0] for est in found])
        style = {"color": colour, "markersize": 5, "markerfacecolor": "white" if prefix else colour}
        left.vlines(shift * n, *ends.T, color=colour, linewidth=2.0)
        left.plot(shift * n, value, marker, label=label, **style)
        right.plot(n, mcse, f"{marker}-", label=label, **style)
        if truth is not None:
            made = {"color": colour, "markersize": 7, "linestyle": "none", "markeredgewidth": 1.5}
            right.plot(n, np.abs(value - truth), marker="x", label=f"error made, {label}", **made)
    if truth is not None:
        left.axhline(truth, color=INK, linewidth=1.0, linestyle="--", label="truth", zorder=0)
    _finish(left, right, n, shortened(shown), level)
    return np.array([left, right], dtype=object)


def _lengths(sample: Sample, sizes: Sequence[int] | None) -> list[int]:
    """Draws of each chain, the smallest first, the whole chains by default among them."""
    if sizes is None:
        halves = [sample.length // 2**power for power in reversed(range(SIZES))]
        return sorted({length for length in halves if length >= FEWEST} or {sample.length})
    lengths = sorted({int(size) // sample.chains for size in sizes})
    if not lengths or lengths[0] < 4 or lengths[-1] > sample.length:
        raise ValueError(
            f"sizes {list(sizes)} for {sample.chains} chains of {sample.length} draws: give numbers of "
            f"draws of all chains from {4 * sample.chains} to {sample.size}."
        )
    return lengths


def _estimates(
    values: np.ndarray,
    name: str,
    sample: Sample,
    family: AbstractFamily | None,
    lengths: Sequence[int],
) -> list[Estimate]:
    """One for each length. The longest is audited; a shorter one could not say more."""
    found = []
    for length in reversed(lengths):
        one, first = Integrands(values[:, :length], (name,)), sample[:, :length]
        found.append(estimate(one, first, family, audit="off" if found else "raise"))
    return found[::-1]


def _finish(left: Axes, right: Axes, n: np.ndarray, name: str, level: float) -> None:
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_xlim(n[0] / 1.3, n[-1] * 1.3)
        ax.set_xticks(n, [f"{one:,}" for one in n], fontsize=FONT)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("draws, all chains together")
        framed(ax)
    plain_log(right)
    right.set_ylabel("Monte Carlo standard error")
    left.set_ylabel(f"{name}: estimate, {100 * level:g}% interval")
    legend_above(left, 3)
    legend_above(right, 2)


DASHES = ("--", ":", "-.")  # of the rates that were not kept


def plot_training(control: ControlVariate, *, ax: AxesPair | None = None) -> np.ndarray:
    """How training went: the loss on held-out draws by epoch, and the learning rate below it.

    The rate that was kept is drawn in colour, the others that were tried in grey. A dot marks the
    best iterate, which is the one that was kept. An optimiser that was given has a rate of its own,
    of which nothing is known here.

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
    losses, rates, chosen = _trials(control)
    shape = {"nrows": 2, "ncols": 1, "sharex": True, "height_ratios": [3, 1.4]}
    upper, lower = two_axes(ax, 7.0, 5.0, **shape)
    epochs = np.arange(1, losses.shape[1] + 1)
    others = [trial for trial in range(len(losses)) if trial != chosen]
    for trial in [*others, chosen]:
        style = {"color": CONTROLLED, "linewidth": 2.2, "zorder": 3}
        if trial != chosen:
            dash = DASHES[others.index(trial) % len(DASHES)]
            style = {"color": "#777777", "linewidth": 1.3, "linestyle": dash}
        kept = ", kept" if trial == chosen else ""
        label = "the given optimiser" if rates is None else f"rate {rates[trial, 0]:.2g}{kept}"
        upper.plot(epochs, losses[trial], label=label, **style)
        if rates is not None:
            lower.plot(epochs, rates[trial], **style)
    if np.any(np.isfinite(losses[chosen])):
        best = int(np.nanargmin(losses[chosen]))
        upper.plot(epochs[best], losses[chosen, best], "o", color=CONTROLLED, zorder=4)
    _finish_losses(upper, lower, losses, rates is not None)
    return np.array([upper, lower], dtype=object)


def _trials(control: ControlVariate) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Losses (trial, epoch), rates (trial, epoch) and which trial was kept."""
    if not isinstance(control, ControlVariate):
        raise TypeError(
            f"plot_training draws a ControlVariate, not a {type(control).__name__}: give what fit returned."
        )
    if control.training is not None:
        found = control.training
        rates = None if found.rates is None else np.asarray(found.rates)
        return np.asarray(found.losses), rates, int(found.chosen)
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
        style = {"ha": "center", "va": "center", "fontsize": FONT, "color": INK}
        lower.text(0.5, 0.5, "the optimiser's own", transform=lower.transAxes, **style)
        lower.set_yticks([])
    for ax in (upper, lower):
        framed(ax)
        ax.tick_params(color=FAINT)
