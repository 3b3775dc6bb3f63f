from collections.abc import Sequence
from typing import Any

import numpy as np

from .._require import require
from ..estimation import Estimate
from ._estimate import placed
from ._style import CONTROLLED, PLAIN, chosen_rows


def plot_forest(
    estimate: Estimate,
    *,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    standardise: bool = True,
    backend: str | None = None,
    **settings: Any,
) -> Any:
    """The intervals of `plot_estimate` drawn by arviz-plots, for its backends: Plotly, Bokeh, ...

    Args:
        estimate: of one or more integrands.
        names: of the integrands to draw; by default the first 60.
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

    rows = chosen_rows(estimate.names, names)
    value, plain, ours, theirs = placed(estimate, rows, level, standardise)
    own = {"model": ["plain", "controlled"], "integrand": [estimate.names[i] for i in rows]}
    dims = ("model", "integrand")
    points = xr.Dataset({"mean": (dims, np.stack([plain, value]))}, own)
    ends = {**own, "ci_bound": ["lower", "upper"]}
    intervals = xr.Dataset({"mean": ((*dims, "ci_bound"), np.stack([theirs, ours]))}, ends)
    # plot_forest wants draws, though it has nothing to compute from them: one of each
    data = xr.DataTree.from_dict({"posterior": points.expand_dims(chain=1, draw=1)})
    settings = {"color": [PLAIN, CONTROLLED], "labels": ["integrand"], **settings}
    visuals = {"trunk": False, **settings.pop("visuals", {})}
    stats = {"twig": intervals, "point_estimate": points}
    made = arviz_plots.plot_forest(
        data, combined=True, stats=stats, visuals=visuals, backend=backend, **settings
    )
    if made.backend != "none":
        made.add_legend("model")
    return made
