"""Solvers that find the best control variate of a family."""

from ._auto import Auto
from ._base import (
    AbstractSolver,
    Problem,
    Solution,
    Training,
    evaluate,
    prepare,
    random_key as random_key,
    typical_share as typical_share,
    unit_weights as unit_weights,
    with_training as with_training,
)
from ._conjugate_gradient import (
    KEPT_ROWS as KEPT_ROWS,
    ConjugateGradient,
    is_matrix_free as is_matrix_free,
)
from ._exact import (
    CrossFitted,
    Exact,
    Widened as Widened,
    has_mean_square as has_mean_square,
    unknowns as unknowns,
)
from ._moments import fits_without_each as fits_without_each, moments as moments
from ._nystrom import NYSTROM_ROWS as NYSTROM_ROWS, Nystrom
from ._regression import (
    Coefficients,
    Folds,
    HeldOut,
    Regression,
    instability as instability,
    moves as moves,
    moves_of_means as moves_of_means,
    on_draws as on_draws,
    scaled as scaled,
)
from ._sparse import Sparse
from ._spread import Spread
from ._stochastic import Stochastic
from ._streaming import (
    KEPT_DRAWS as KEPT_DRAWS,
    Fits as Fits,
    Gathered as Gathered,
    MomentsPass as MomentsPass,
    SeriesPass as SeriesPass,
    Working as Working,
    each as each,
    features_of as features_of,
    first_pass as first_pass,
    for_audit as for_audit,
    rows_in_run as rows_in_run,
    runs as runs,
    some_rows as some_rows,
)

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
    "prepare",
]
