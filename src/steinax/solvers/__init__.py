"""Ways to find the best control variate of a family."""

from ._auto import Auto
from ._base import AbstractSolver, Problem, Solution, Training, evaluate
from ._conjugate_gradient import ConjugateGradient
from ._exact import CrossFitted, Exact
from ._nystrom import Nystrom
from ._regression import Coefficients, Folds, HeldOut, Regression
from ._sparse import Sparse
from ._spread import Spread
from ._stochastic import Stochastic

__all__ = [
    "AbstractSolver",
    "Auto",
    "Coefficients",
    "ConjugateGradient",
    "CrossFitted",
    "Exact",
    "Folds",
    "HeldOut",
    "Nystrom",
    "Problem",
    "Regression",
    "Solution",
    "Sparse",
    "Spread",
    "Stochastic",
    "Training",
    "evaluate",
]
