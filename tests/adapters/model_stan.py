"""The shared model in Stan, compiled and run by PyStan."""

import fcntl
import gc
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import steinax as sx
from adapters.shared_model import COUNTS, Y

DATA = {"n": len(Y), "Y": Y.tolist(), "counts": COUNTS.tolist()}
NOT_OURS = (
    "invalid escape sequence",  # clikit
    "The 'missing' argument to fields is deprecated",  # httpstan, to marshmallow
    "`Number` field should not be instantiated",
    r"(path|read_text|open_text) is deprecated",  # httpstan, to importlib.resources
    "unclosed",  # httpstan, at its end
    "It is recommended to use web.AppKey instances",  # httpstan, to aiohttp
    r"os\.fork\(\) was called",  # httpstan forks to sample; jax warns if it has been used before
)
PROGRAM = """
data {
  int<lower=1> n;
  array[n] vector[3] Y;
  array[4] int<lower=0> counts;
}
parameters {
  vector[3] beta;
  real<lower=0> tau;
  simplex[4] w;
  cholesky_factor_corr[3] L;
}
model {
  beta ~ normal(0, 2);
  tau ~ lognormal(0, 1);
  w ~ dirichlet(rep_vector(2, 4));
  L ~ lkj_corr_cholesky(2);
  Y ~ multi_normal_cholesky(beta, tau * L);
  counts ~ multinomial(w);
}
"""


@contextmanager
def pystan_warnings() -> Iterator[None]:
    """PyStan's own dependencies warn when they are imported or compile; steinax has no part in it."""
    with warnings.catch_warnings():
        for known in NOT_OURS:
            warnings.filterwarnings("ignore", message=known)
        yield
        gc.collect()  # what httpstan left open would warn later, in somebody else's test


def build(program: str = PROGRAM, data: dict[str, Any] | None = None) -> Any:
    """A compiled model: about 40 s the first time, then from the cache of httpstan."""
    with pystan_warnings(), _one_at_a_time():
        import stan

        return stan.build(program, data=DATA if data is None else data, random_seed=20261115)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Of two processes that need the same model one compiles it, and the other finds it done."""
    with Path(tempfile.gettempdir(), "steinax-tests-stan.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compiled(model: Any) -> ModuleType:
    """The compiled model's own functions: log_prob, log_prob_grad, write_array, transform_inits."""
    import httpstan.models

    return httpstan.models.import_services_extension_module(model.model_name)


@cache
def pystan_fit(**settings: Any) -> Any:
    """4 chains x 500 draws by NUTS unless told otherwise."""
    model = build()
    with pystan_warnings():
        return model.sample(**{"num_chains": 4, "num_samples": 500, **settings})


def pystan_sample() -> sx.Sample:
    """The shared model's sample."""
    return sx.from_pystan(pystan_fit())


@cache
def _stan() -> tuple[ModuleType, dict[str, Any]]:
    model = build()
    return compiled(model), model.data


def log_density(unconstrained: np.ndarray) -> float:
    """Stan's own log density, with the terms of the Jacobian."""
    stan, data = _stan()
    return stan.log_prob(data, unconstrained.tolist(), adjust_transform=True)
