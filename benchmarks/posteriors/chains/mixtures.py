"""A Gaussian process with three hyperparameters, and a mixture of two normals."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.distributions import constraints

from ._model import Model


def gp_regr(data: dict) -> None:
    """A Gaussian process on eleven points; the noise enters by its variance, as in the original."""
    x = data["x"]
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    smooth = alpha**2 * jnp.exp(-0.5 * ((x[:, None] - x) / rho) ** 2)
    covariance = smooth + sigma * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(0.0, covariance), obs=data["y"])


def low_dim_gauss_mix(data: dict) -> None:
    """Two normals with ordered means, each with its own scale."""
    ordered = dist.ImproperUniform(constraints.ordered_vector, (), (2,))
    mu = numpyro.sample("mu", ordered)
    numpyro.factor("prior of mu", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    weights = jnp.log(jnp.stack([theta, 1 - theta]))
    each = dist.Normal(mu, sigma).log_prob(data["y"][:, None]) + weights
    numpyro.factor("likelihood", logsumexp(each, axis=1).sum())


MODELS = (
    Model("gp_pois_regr-gp_regr", gp_regr),
    Model("low_dim_gauss_mix-low_dim_gauss_mix", low_dim_gauss_mix),
)
