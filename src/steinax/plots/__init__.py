"""Plots of estimates, fits and audits with matplotlib.

Every function draws on the given `ax` and returns it; without one it makes a new figure.
None of them shows or saves anything, or changes a setting of matplotlib.
"""

from ._candidates import plot_candidates, plot_worth
from ._diagnostics import plot_audit, plot_convergence, plot_residuals, plot_training
from ._estimate import plot_estimate, plot_forest
from ._style import CONTROLLED, PLAIN

__all__ = [
    "CONTROLLED",
    "PLAIN",
    "plot_audit",
    "plot_candidates",
    "plot_convergence",
    "plot_estimate",
    "plot_forest",
    "plot_residuals",
    "plot_training",
    "plot_worth",
]
