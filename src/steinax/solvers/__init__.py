"""Ways to find the best control variate of a family."""

from ._auto import Auto
from ._base import AbstractSolver, HeldOut, Solution, Training
from ._conjugate_gradient import ConjugateGradient
from ._exact import Exact
from ._nystrom import Nystrom
from ._problem import Folds, Problem, evaluate
from ._sparse import Sparse
from ._spread import Spread
from ._stochastic import Stochastic

__all__ = [
    "AbstractSolver",
    "Auto",
    "ConjugateGradient",
    "Exact",
    "Folds",
    "HeldOut",
    "Nystrom",
    "Problem",
    "Solution",
    "Sparse",
    "Spread",
    "Stochastic",
    "Training",
    "evaluate",
]
