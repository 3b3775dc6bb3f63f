"""Eight models with simulated data, of 3 to 60 parameters."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist


class Model(NamedTuple):
    """A posterior.

    Attributes:
        program: the NumPyro model, a function of no arguments.
        dim: the number of its unconstrained parameters.
    """

    program: Callable[[], None]
    dim: int


def _normals(name: str, count: int, scale: float = 1.0):
    return numpyro.sample(name, dist.Normal(0, scale).expand([count]).to_event(1))


def weibull() -> None:
    """Survival times with one covariate, a third of them censored."""
    rng = np.random.default_rng(1)
    x, time = rng.normal(size=80), rng.weibull(1.5, size=80)
    time = time * np.exp(0.5 * x)
    end = np.quantile(time, 0.67)
    seen, time = time < end, np.minimum(time, end)
    shape = numpyro.sample("shape", dist.Gamma(2.0, 1.0))
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    log_rate = shape * (jnp.log(time) - intercept - slope * x)
    log_hazard = jnp.log(shape) - jnp.log(time) + log_rate
    numpyro.factor("likelihood", (seen * log_hazard - jnp.exp(log_rate)).sum())


def overdispersed() -> None:
    """Counts with more than a Poisson's variance."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    mean = np.exp(1 + x @ [0.4, -0.3, 0.2])
    counts = rng.poisson(rng.gamma(3.0, mean / 3.0))
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    beta = _normals("beta", 3)
    shape = numpyro.sample("shape", dist.Gamma(2.0, 0.5))
    rate = jnp.exp(intercept + x @ beta)
    numpyro.sample("counts", dist.NegativeBinomial2(rate, shape), obs=counts)


def poisson(covariates: int = 7) -> None:
    """Counts on some covariates."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100, covariates))
    counts = rng.poisson(np.exp(0.5 + x @ rng.normal(size=covariates) * 0.3))
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    beta = _normals("beta", covariates)
    numpyro.sample("counts", dist.Poisson(jnp.exp(intercept + x @ beta)), obs=counts)


def eight_schools() -> None:
    """Rubin's data, non-centred."""
    y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    numpyro.sample("y", dist.Normal(mu + tau * _normals("standard", 8), sigma), obs=y)


def logistic(seed: int = 5, n: int = 200, covariates: int = 20, size: float = 0.5) -> None:
    """Yes or no on some covariates."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, covariates))
    yes = rng.uniform(size=n) < 1 / (1 + np.exp(-x @ rng.normal(size=covariates) * size))
    intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    beta = _normals("beta", covariates)
    numpyro.sample("yes", dist.Bernoulli(logits=intercept + x @ beta), obs=1 * yes)


def radon() -> None:
    """Measurements in 22 counties: varying intercepts, one slope."""
    rng = np.random.default_rng(6)
    county = np.repeat(np.arange(22), rng.integers(2, 12, size=22))
    floor = 1.0 * (rng.uniform(size=len(county)) < 0.3)
    y = (1.4 + 0.4 * rng.normal(size=22))[county] - 0.7 * floor
    y = y + 0.7 * rng.normal(size=len(y))
    mu = numpyro.sample("mu", dist.Normal(0, 2))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    slope = numpyro.sample("slope", dist.Normal(0, 2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    alpha = mu + tau * _normals("standard", 22)
    numpyro.sample("y", dist.Normal(alpha[county] + slope * floor, sigma), obs=y)


def groups() -> None:
    """Means of fifty groups with an unknown spread."""
    rng = np.random.default_rng(7)
    y = rng.normal(size=50) * 1.2 + rng.normal(size=50)
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfNormal(2))
    numpyro.sample("y", dist.Normal(mu + tau * _normals("standard", 50), 1.0), obs=y)


MODELS = {
    "weibull": Model(weibull, 3),
    "overdispersed": Model(overdispersed, 5),
    "poisson": Model(poisson, 8),
    "eight_schools": Model(eight_schools, 10),
    "logistic": Model(logistic, 21),
    "radon": Model(radon, 26),
    "groups": Model(groups, 52),
    "wide": Model(partial(logistic, 8, 300, 59, 0.3), 60),
}
LARGE = {"poisson_ten": Model(partial(poisson, 9), 10)}  # for 100,000 draws
