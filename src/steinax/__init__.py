"""steinax: posterior expectations with far smaller Monte Carlo error, from draws and scores.

Every name is imported when it is first asked for, so that `steinax --help` does not wait for jax.
Type checkers read `__init__.pyi`.
"""

from importlib import import_module

_HOMES = {  # in the order in which data flows
    "working": (),
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
        "record",
    ),
    "data": (
        "Sample",
        "Stream",
    ),
    "operators": (
        "Langevin",
        "ScalarLangevin",
    ),
    "kernels": (),
    "families": (
        "Polynomial",
        "KernelTranslates",
        "AllDraws",
        "Landmarks",
        "Network",
        "RandomFeatures",
        "Tied",
        "Kinks",
    ),
    "spaces": (),
    "objectives": (
        "LeastSquares",
        "Variance",
        "NoPenalty",
        "Ridge",
        "NativeNorm",
        "MeanSquare",
    ),
    "solvers": (
        "Auto",
        "Exact",
        "ConjugateGradient",
        "Nystrom",
        "Stochastic",
        "Sparse",
        "Spread",
    ),
    "fitting": (
        "fit",
        "ControlVariate",
    ),
    "chains": (),
    "auditing": (
        "audit",
        "AuditError",
        "AuditWarning",
    ),
    "estimation": (
        "CrossFit",
        "HoldOut",
        "InSample",
        "estimate",
        "Estimate",
        "weigh",
        "predictive",
        "cross_validate",
    ),
    "molecules": (),
    "farm": (
        "estimate_many",
        "Batch",
    ),
    "summarising": ("summary",),
    "stopping": ("until",),
    "citing": ("citations",),
    "thinning": (
        "ksd",
        "thin",
    ),
    "lattices": (),
    "tempering": (
        "Tempered",
        "evidence",
    ),
    "plots": (
        "plot_estimate",
        "plot_worth",
        "plot_residuals",
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
    "contrib": (),
}
_ELSEWHERE = {
    "load": "steinax.from_arviz(path) reads what steinax.save wrote, and steinax.ControlVariate.load(path) "
    "a control variate",
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
        raise _missing(name)
    found = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = found  # from now on without this function
    return found


def _missing(name: str) -> AttributeError:
    """Create the error for a name that steinax lacks, which names the package that has it."""
    for home in [] if name.startswith("_") else _HOMES:
        if name in getattr(import_module(f".{home}", __name__), "__all__", ()):
            return AttributeError(f"steinax has no {name}: it is steinax.{home}.{name}")
    if name in _ELSEWHERE:
        return AttributeError(f"steinax has no {name}: {_ELSEWHERE[name]}.")
    module = import_module(__name__)  # by which Python says what may be meant
    return AttributeError(f"module 'steinax' has no attribute {name!r}", name=name, obj=module)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_HOMES, "__version__"})
