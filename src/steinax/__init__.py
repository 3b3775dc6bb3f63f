"""steinax: posterior expectations with far smaller Monte Carlo error, from draws and scores.

Every name is imported when it is first asked for, so that `steinax --help` does not wait for jax.
Type checkers read `__init__.pyi`.
"""

from importlib import import_module

_HOMES = {  # in the order in which data flows
    "working": (
        "CorruptChunkError",
        "WorkerLostError",
        "OtherRunError",
        "NotKeptWarning",
    ),
    "adapters": (
        "from_nutpie",
        "from_pymc",
        "from_numpyro",
        "from_blackjax",
        "from_pystan",
        "from_zarr",
        "from_cmdstan",
        "from_bridgestan",
        "from_arviz",
        "from_logdensity",
        "from_arrays",
    ),
    "data": (
        "Sample",
        "Variables",
        "Stream",
        "Integrands",
        "integrands",
        "gather_chains",
        "AffineMap",
        "standardise",
    ),
    "operators": (
        "AbstractOperator",
        "Langevin",
        "ScalarLangevin",
        "ScaledOperator",
    ),
    "kernels": (
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
    ),
    "families": (
        "AbstractFamily",
        "AbstractLinearFamily",
        "Polynomial",
        "KernelTranslates",
        "AllDraws",
        "Landmarks",
        "Network",
        "RandomFeatures",
    ),
    "objectives": (
        "AbstractObjective",
        "LeastSquares",
        "Variance",
        "AbstractPenalty",
        "NoPenalty",
        "Ridge",
        "NativeNorm",
        "MeanSquare",
    ),
    "solvers": (
        "AbstractSolver",
        "Auto",
        "Exact",
        "ConjugateGradient",
        "Nystrom",
        "Stochastic",
        "Spread",
    ),
    "fitting": (
        "fit",
        "ControlVariate",
    ),
    "chains": (
        "ChainStatistics",
        "chain_statistics",
    ),
    "auditing": (
        "audit",
        "AuditReport",
        "AuditError",
        "Finding",
    ),
    "estimation": (
        "AbstractSplit",
        "CrossFit",
        "HoldOut",
        "InSample",
        "AuditWarning",
        "estimate",
        "Estimate",
        "Candidates",
        "memory_plan",
        "MemoryPlan",
        "weigh",
        "WeightedDraws",
    ),
    "farm": (
        "estimate_many",
        "Batch",
        "Estimates",
        "FarmTask",
    ),
    "summarising": ("summary",),
    "citing": (
        "citations",
        "Citations",
    ),
    "plots": (
        "plot_estimate",
        "plot_worth",
        "plot_rest",
        "plot_audit",
        "plot_training",
        "plot_candidates",
        "plot_convergence",
        "plot_forest",
    ),
    "saving": (
        "to_arviz",
        "save",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name == "__version__":  # when it is asked for: reading metadata is slow
        from importlib.metadata import version

        return version("steinax")
    if name in _HOMES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        module = import_module(__name__)  # by which Python says what may be meant
        raise AttributeError(f"module 'steinax' has no attribute {name!r}", name=name, obj=module)
    found = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found  # found at once from now on
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *__all__, "__version__"])
