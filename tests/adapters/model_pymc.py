"""The shared model in PyMC, and runs of it by nutpie and by PyMC's own NUTS."""

import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

import steinax as sx
from adapters.shared_model import CONCENTRATION, COUNTS, ETA, Y
from steinax.adapters._nutpie import from_nutpie
from steinax.adapters._pymc import from_pymc

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyMC imports what PyTensor has declared out of date
    import pymc as pm
    import pytensor.tensor as pt
    from pytensor.compile.mode import Mode

SEED = 20261115
RUN: dict[str, Any] = {"chains": 4, "draws": 500, "tune": 500}
KEEP: dict[str, Any] = {"store_gradient": True, "store_unconstrained": True}
COLUMNS = (
    *("beta[0]", "beta[1]", "beta[2]", "tau_log__"),
    *("w_simplex__[0]", "w_simplex__[1]", "w_simplex__[2]"),
    *("L_cholesky_corr__[0]", "L_cholesky_corr__[1]", "L_cholesky_corr__[2]"),
)


def lkj_cholesky(L: Any) -> Any:
    """The log density of LKJCholesky(3, ETA), up to a constant: in PyTensor or in NumPy."""
    log = np.log if isinstance(L, np.ndarray) else pt.log
    return (2 * ETA - 1) * log(L[1, 1]) + (2 * ETA - 2) * log(L[2, 2])


@functools.cache
def model() -> pm.Model:
    with pm.Model() as built:
        beta = pm.Normal("beta", 0, 2, shape=3)
        tau = pm.LogNormal("tau", 0, 1)
        w = pm.Dirichlet("w", CONCENTRATION)
        L = pm.LKJCorr("L", n=3, eta=ETA)
        # PyMC's LKJCorr is a Cholesky factor, and its density lacks the Jacobian's term L[1, 1]
        # that its random draws have: put the right density for whatever this version has.
        own = pm.logp(pm.LKJCorr.dist(n=3, eta=ETA), L)
        pm.Potential("lkj", lkj_cholesky(L) - own)
        pm.MvNormal("y", beta, chol=tau * L, observed=Y)
        pm.Multinomial("counts", COUNTS.sum(), w, observed=COUNTS)
    return built


@functools.cache
def nutpie_trace() -> Any:
    """By nutpie, with scores; its JAX backend compiles this model in seconds."""
    with compiling_by_jax():
        import nutpie

        compiled = nutpie.compile_pymc_model(model(), backend="jax")
        return nutpie.sample(compiled, seed=SEED, progress_bar=False, **RUN, **KEEP)


@functools.cache
def pymc_trace() -> Any:
    """By PyMC's own NUTS, without scores and with its warm-up."""
    quiet = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
    with compiling_by_jax():
        return pm.sample(
            model=model(),
            nuts_sampler="pymc",
            random_seed=SEED,
            cores=1,
            discard_tuned_samples=False,
            compile_kwargs={"mode": "JAX"},
            **RUN,
            **quiet,
        )


def nutpie_sample() -> sx.Sample:
    return from_nutpie(nutpie_trace())


def pymc_sample() -> sx.Sample:
    trace = pymc_trace()
    with compiling_by_jax():
        return from_pymc(model(), trace, backend="jax")


def log_density(of: pm.Model, names: Sequence[str]) -> Callable[[np.ndarray], float]:
    """The model's own log density of an unconstrained draw, whose columns have these names."""
    function = of.compile_logp(mode=Mode(linker="py", optimizer="fast_compile"))
    places: dict[str, list[int]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for i, name in enumerate(names):
        base, _, index = name.removesuffix("]").partition("[")
        places.setdefault(base, []).append(i)
        shapes[base] = tuple(int(k) + 1 for k in index.split(", ")) if index else ()
    return lambda x: float(
        function({name: x[at].reshape(shapes[name]) for name, at in places.items()})
    )


@contextmanager
def compiling_by_jax() -> Iterator[None]:
    """A scope for PyTensor's JAX backend, which sets double precision for the whole process.

    Single precision, in which every test starts, is set again: within `jax.enable_x64` jax does not tell
    what the process has. What samplers and compilers warn of on their own account is not what is tested.
    """
    flags = os.environ.get("XLA_FLAGS")
    jax.devices()  # before PyMC asks for a hundred
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("pymc.sampling.jax")
            jax.config.update("jax_enable_x64", True)
            yield
        finally:
            jax.config.update("jax_enable_x64", False)
            os.environ.pop("XLA_FLAGS", None)
            os.environ |= {} if flags is None else {"XLA_FLAGS": flags}
