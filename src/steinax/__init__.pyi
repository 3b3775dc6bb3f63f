"""What `import steinax` offers, for type checkers; `__init__.py` imports it lazily."""

from .working import (
    CorruptChunkError as CorruptChunkError,
    WorkerLostError as WorkerLostError,
    OtherRunError as OtherRunError,
    NotKeptWarning as NotKeptWarning,
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
)
from .data import (
    Sample as Sample,
    Variables as Variables,
    Stream as Stream,
    Integrands as Integrands,
    integrands as integrands,
    gather_chains as gather_chains,
    AffineMap as AffineMap,
    standardise as standardise,
)
from .operators import (
    AbstractOperator as AbstractOperator,
    Langevin as Langevin,
    ScalarLangevin as ScalarLangevin,
    ScaledOperator as ScaledOperator,
)
from .kernels import (
    AbstractKernel as AbstractKernel,
    AbstractRadial as AbstractRadial,
    SquaredExponential as SquaredExponential,
    InverseMultiquadric as InverseMultiquadric,
    RationalQuadratic as RationalQuadratic,
    Matern32 as Matern32,
    Matern52 as Matern52,
    DampedGaussian as DampedGaussian,
    ExponentialDotProduct as ExponentialDotProduct,
    AbstractHeuristic as AbstractHeuristic,
    MedianHeuristic as MedianHeuristic,
)
from .families import (
    AbstractFamily as AbstractFamily,
    AbstractLinearFamily as AbstractLinearFamily,
    Polynomial as Polynomial,
    KernelTranslates as KernelTranslates,
    AllDraws as AllDraws,
    Landmarks as Landmarks,
    Network as Network,
    RandomFeatures as RandomFeatures,
)
from .objectives import (
    AbstractObjective as AbstractObjective,
    LeastSquares as LeastSquares,
    Variance as Variance,
    AbstractPenalty as AbstractPenalty,
    NoPenalty as NoPenalty,
    Ridge as Ridge,
    NativeNorm as NativeNorm,
    MeanSquare as MeanSquare,
)
from .solvers import (
    AbstractSolver as AbstractSolver,
    Auto as Auto,
    Exact as Exact,
    ConjugateGradient as ConjugateGradient,
    Nystrom as Nystrom,
    Stochastic as Stochastic,
    Spread as Spread,
)
from .fitting import (
    fit as fit,
    ControlVariate as ControlVariate,
)
from .chains import (
    ChainStatistics as ChainStatistics,
    chain_statistics as chain_statistics,
)
from .auditing import (
    audit as audit,
    AuditReport as AuditReport,
    AuditError as AuditError,
    Finding as Finding,
)
from .estimation import (
    AbstractSplit as AbstractSplit,
    CrossFit as CrossFit,
    HoldOut as HoldOut,
    InSample as InSample,
    AuditWarning as AuditWarning,
    estimate as estimate,
    Estimate as Estimate,
    Candidates as Candidates,
    memory_plan as memory_plan,
    MemoryPlan as MemoryPlan,
    weigh as weigh,
    WeightedDraws as WeightedDraws,
)
from .farm import (
    estimate_many as estimate_many,
    Batch as Batch,
    Estimates as Estimates,
    FarmTask as FarmTask,
)
from .summarising import (
    summary as summary,
)
from .citing import (
    citations as citations,
    Citations as Citations,
)
from .plots import (
    plot_estimate as plot_estimate,
    plot_worth as plot_worth,
    plot_rest as plot_rest,
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
