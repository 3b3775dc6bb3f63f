"""steinax: posterior expectations with far smaller Monte Carlo error, from draws and scores."""

from .data import AffineMap, Integrands, Sample, Stream, Variables, integrands, standardise
from .adapters import from_arrays, from_arviz
from .operators import AbstractOperator, Langevin, ScalarLangevin, ScaledOperator
from .kernels import (
    AbstractHeuristic,
    AbstractKernel,
    AbstractRadial,
    DampedGaussian,
    ExponentialDotProduct,
    InverseMultiquadric,
    Matern32,
    Matern52,
    MedianHeuristic,
    RationalQuadratic,
    SquaredExponential,
)
from .families import (
    AbstractFamily,
    AbstractLinearFamily,
    AllDraws,
    KernelTranslates,
    Landmarks,
    Network,
    Polynomial,
    RandomFeatures,
)
from .objectives import (
    AbstractObjective,
    AbstractPenalty,
    LeastSquares,
    MeanSquare,
    NativeNorm,
    NoPenalty,
    Ridge,
    Variance,
)
from .solvers import AbstractSolver, Auto, ConjugateGradient, Exact, Stochastic
from .fitting import ControlVariate, fit
from .chains import ChainStatistics, chain_statistics
from .auditing import AuditError, AuditReport, Finding, audit
from .estimation import (
    AbstractSplit,
    AuditWarning,
    Candidates,
    CrossFit,
    Estimate,
    HoldOut,
    InSample,
    WeightedDraws,
    estimate,
    weigh,
)
from .saving import save, to_arviz

__all__ = [  # in the order in which data flows
    "from_arrays",
    "from_arviz",
    "Sample",
    "Variables",
    "Stream",
    "Integrands",
    "integrands",
    "AffineMap",
    "standardise",
    "AbstractOperator",
    "Langevin",
    "ScalarLangevin",
    "ScaledOperator",
    "AbstractKernel",
    "AbstractRadial",
    "SquaredExponential",
    "InverseMultiquadric",
    "RationalQuadratic",
    "Matern32",
    "Matern52",
    "DampedGaussian",
    "ExponentialDotProduct",
    "AbstractHeuristic",
    "MedianHeuristic",
    "AbstractFamily",
    "AbstractLinearFamily",
    "Polynomial",
    "KernelTranslates",
    "AllDraws",
    "Landmarks",
    "Network",
    "RandomFeatures",
    "AbstractObjective",
    "LeastSquares",
    "Variance",
    "AbstractPenalty",
    "NoPenalty",
    "Ridge",
    "NativeNorm",
    "MeanSquare",
    "AbstractSolver",
    "Auto",
    "Exact",
    "ConjugateGradient",
    "Stochastic",
    "fit",
    "ControlVariate",
    "AbstractSplit",
    "CrossFit",
    "HoldOut",
    "InSample",
    "audit",
    "AuditReport",
    "AuditError",
    "AuditWarning",
    "Finding",
    "estimate",
    "Estimate",
    "Candidates",
    "weigh",
    "WeightedDraws",
    "ChainStatistics",
    "chain_statistics",
    "to_arviz",
    "save",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # when it is asked for: reading metadata is slow
        from importlib.metadata import version

        return version("steinax")
    raise AttributeError(f"module 'steinax' has no attribute {name!r}")
