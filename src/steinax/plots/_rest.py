import numpy as np

from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec
from ..data._weights import of_draws, refuse_weights
from ..families import AbstractFamily
from ..fitting import ControlVariate, fit
from ._style import CONTROLLED, FAINT, FONT, INK, PLAIN, AxesPair, chosen_rows, shortened, two_axes


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
        axes.grid(color="#eeeeee", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
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
    row = chosen_rows(wanted.names, None if name is None else [name])[0]
    shown = wanted.names[row]
    values = wanted.values[..., row : row + 1]
    if isinstance(control, AbstractFamily):
        half = sample.length // 2
        first, second = part(sample, slice(half)), part(sample, slice(half, None))
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


def part(sample: Sample, draws: slice) -> Sample:
    """Some consecutive draws of every chain."""
    own = (sample.draws[:, draws], sample.scores[:, draws], sample.names, sample.dtype)
    return Sample(*own, log_weights=of_draws(sample.weights, draws))


def _part(before: float, after: float) -> str:
    """How much of the variance is left, in words."""
    if before <= 0:
        return ""
    share = after / before
    return f", 1/{1 / share:,.3g} of it" if 0 < share < 0.5 else f", {100 * share:.3g}% of it"
