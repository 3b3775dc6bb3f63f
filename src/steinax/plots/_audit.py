from collections.abc import Sequence

import numpy as np

from ..auditing import AuditReport, audit
from ..auditing._identities import Identities, standardised, tested
from ..data import Sample
from ..data._weights import refuse_weights
from ._style import FONT, INK, Axes, one_axes, shortened

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
