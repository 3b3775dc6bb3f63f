"""What `import steinax` offers, for type checkers; `__init__.py` imports it lazily."""

from . import (
    working as working,
    adapters as adapters,
    data as data,
    operators as operators,
    kernels as kernels,
    families as families,
    spaces as spaces,
    objectives as objectives,
    solvers as solvers,
    fitting as fitting,
    chains as chains,
    auditing as auditing,
    estimation as estimation,
    molecules as molecules,
    farm as farm,
    summarising as summarising,
    stopping as stopping,
    citing as citing,
    thinning as thinning,
    lattices as lattices,
    tempering as tempering,
    plots as plots,
    saving as saving,
    contrib as contrib,
)
from .adapters import (
    from_nutpie as from_nutpie,
    from_pymc as from_pymc,
    from_numpyro as from_numpyro,
    from_blackjax as from_blackjax,
    from_pystan as from_pystan,
    from_zarr as from_zarr,
    from_cmdstan as from_cmdstan,
    from_bridgestan as from_bridgestan,
    from_arviz as from_arviz,
    from_logdensity as from_logdensity,
    from_arrays as from_arrays,
    record as record,
)
from .data import (
    Sample as Sample,
    Stream as Stream,
)
from .operators import (
    Langevin as Langevin,
    ScalarLangevin as ScalarLangevin,
)
from .families import (
    Polynomial as Polynomial,
    KernelTranslates as KernelTranslates,
    AllDraws as AllDraws,
    Landmarks as Landmarks,
    Network as Network,
    RandomFeatures as RandomFeatures,
    Tied as Tied,
    Kinks as Kinks,
)
from .objectives import (
    LeastSquares as LeastSquares,
    Variance as Variance,
    NoPenalty as NoPenalty,
    Ridge as Ridge,
    NativeNorm as NativeNorm,
    MeanSquare as MeanSquare,
)
from .solvers import (
    Auto as Auto,
    Exact as Exact,
    ConjugateGradient as ConjugateGradient,
    Nystrom as Nystrom,
    Stochastic as Stochastic,
    Sparse as Sparse,
    Spread as Spread,
)
from .fitting import (
    fit as fit,
    ControlVariate as ControlVariate,
)
from .auditing import (
    audit as audit,
    AuditError as AuditError,
    AuditWarning as AuditWarning,
)
from .estimation import (
    CrossFit as CrossFit,
    HoldOut as HoldOut,
    InSample as InSample,
    estimate as estimate,
    Estimate as Estimate,
    weigh as weigh,
    predictive as predictive,
    cross_validate as cross_validate,
)
from .farm import (
    estimate_many as estimate_many,
    Batch as Batch,
)
from .summarising import (
    summary as summary,
)
from .stopping import (
    until as until,
)
from .citing import (
    citations as citations,
)
from .thinning import (
    ksd as ksd,
    thin as thin,
)
from .tempering import (
    Tempered as Tempered,
    evidence as evidence,
)
from .plots import (
    plot_estimate as plot_estimate,
    plot_worth as plot_worth,
    plot_residuals as plot_residuals,
    plot_audit as plot_audit,
    plot_training as plot_training,
    plot_candidates as plot_candidates,
    plot_convergence as plot_convergence,
    plot_forest as plot_forest,
)
from .saving import (
    to_arviz as to_arviz,
    save as save,
)

__version__: str
