import numpy as np

from ..fitting import ControlVariate
from ._style import CONTROLLED, FAINT, FONT, INK, Axes, AxesPair, legend_above, plain_log, two_axes

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
    _finish(upper, lower, losses, rates is not None)
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


def _finish(upper: Axes, lower: Axes, losses: np.ndarray, known: bool) -> None:
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
        ax.grid(color="#eeeeee", linewidth=0.8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(color=FAINT)
