"""Time series: autoregression, moving averages, changing variances."""

from functools import partial

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import constraints
from numpyro.infer import init_to_uniform

from ._model import Model, flat_on


def ar_k(data: dict) -> None:
    """Autoregression of order five."""
    y, order = data["y"], int(data["K"])
    alpha = numpyro.sample("alpha", dist.Normal(0, 10))
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([order]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    past = jnp.stack([y[order - lag : -lag] for lag in range(1, order + 1)], axis=1)
    numpyro.sample("y", dist.Normal(alpha + past @ beta, sigma), obs=y[order:])


def arma11(data: dict) -> None:
    """Autoregression and a moving average, each of order one."""
    y = data["y"]
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    phi = numpyro.sample("phi", dist.Normal(0, 2))
    theta = numpyro.sample("theta", dist.Normal(0, 2))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))

    def step(error: jax.Array, pair: jax.Array) -> tuple[jax.Array, jax.Array]:
        error = pair[1] - (mu + phi * pair[0] + theta * error)
        return error, error

    first = y[0] - (mu + phi * mu)
    _, others = jax.lax.scan(step, first, jnp.stack([y[:-1], y[1:]], axis=1))
    errors = jnp.append(first, others)
    numpyro.sample("errors", dist.Normal(errors, sigma), obs=jnp.zeros_like(y))


def garch11(data: dict) -> None:
    """A variance that follows the last shock and itself: a posterior against its bounds."""
    y = data["y"]
    mu = numpyro.sample("mu", flat_on(constraints.real))
    alpha0 = numpyro.sample("alpha0", flat_on(constraints.positive))
    alpha1 = jnp.asarray(numpyro.sample("alpha1", flat_on(constraints.unit_interval)))
    # NumPyro transforms back with bounds that depend on parameters for `Uniform`, not for
    # `ImproperUniform`; the factor takes its density away.
    beta1 = numpyro.sample("beta1", dist.Uniform(0.0, 1.0 - alpha1))
    numpyro.factor("flat", jnp.log1p(-alpha1))

    def step(variance: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
        following = jnp.asarray(alpha0 + alpha1 * (last - mu) ** 2 + beta1 * variance)
        return following, following

    first = jnp.asarray(data["sigma1"]) ** 2
    _, others = jax.lax.scan(step, first, y[:-1])
    numpyro.sample("y", dist.Normal(mu, jnp.sqrt(jnp.append(first, others))), obs=y)


# Farther out |theta| > 1 is likely, where errors grow exponentially: one chain in ten never came back.
CLOSE = partial(init_to_uniform, radius=0.5)  # type: ignore # NumPyro says int, and means float

MODELS = (
    Model("arK-arK", ar_k),
    Model("arma-arma11", arma11, start=CLOSE),
    Model("garch-garch11", garch11),
)
