"""Pictures of an estimate, of a fit and of an audit, by matplotlib.

Every function takes `ax`, draws on it and gives it back; without one it makes a figure of its own.
None of them shows or saves anything, or changes a setting of matplotlib.
"""

from ._audit import plot_audit
from ._candidates import plot_candidates
from ._convergence import plot_convergence
from ._estimate import plot_estimate
from ._forest import plot_forest
from ._rest import plot_rest
from ._style import CONTROLLED, PLAIN
from ._training import plot_training
from ._worth import plot_worth

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
