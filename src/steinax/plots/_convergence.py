from collections.abc import Sequence

import numpy as np

from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..estimation import Estimate, estimate
from ..families import AbstractFamily
from ._rest import part
from ._style import (
    CONTROLLED,
    FONT,
    INK,
    PLAIN,
    Axes,
    AxesPair,
    chosen_rows,
    legend_above,
    plain_log,
    shortened,
    two_axes,
)

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
    row = chosen_rows(wanted.names, None if name is None else [name])[0]
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
        one, first = Integrands(values[:, :length], (name,)), part(sample, slice(length))
        found.append(estimate(one, first, family, audit="off" if found else "raise"))
    return found[::-1]


def _finish(left: Axes, right: Axes, n: np.ndarray, name: str, level: float) -> None:
    for ax in (left, right):
        ax.set_xscale("log")
        ax.set_xlim(n[0] / 1.3, n[-1] * 1.3)
        ax.set_xticks(n, [f"{one:,}" for one in n], fontsize=FONT)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("draws, all chains together")
        ax.grid(color="#eeeeee", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
    plain_log(right)
    right.set_ylabel("Monte Carlo standard error")
    left.set_ylabel(f"{name}: estimate, {100 * level:g}% interval")
    legend_above(left, 3)
    legend_above(right, 2)
