"""Pictures of an estimate, of a fit and of an audit, by matplotlib.

Every function takes `ax`, draws on it and gives it back; without one it makes a figure of its own.
None of them shows or saves anything, or changes a setting of matplotlib.
"""

from ._candidates import plot_candidates, plot_worth
from ._diagnostics import plot_audit, plot_convergence, plot_rest, plot_training
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
    "plot_rest",
    "plot_training",
    "plot_worth",
]
