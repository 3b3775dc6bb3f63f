"""Differential equations: lynx and hare."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import init_to_median

from ._model import Model

STEPS = 10  # of the fourth-order Runge-Kutta method, a year


def lotka_volterra(data: dict) -> None:
    """Pelts of hares and lynx over twenty years, by the equations of Lotka and Volterra."""
    priors = dist.TruncatedNormal(
        jnp.array([1.0, 0.05, 1.0, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05]), low=0.0
    )
    theta = numpyro.sample("theta", priors.to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1).expand([2]).to_event(1))
    first = numpyro.sample("z_init", dist.LogNormal(jnp.log(10.0), 1).expand([2]).to_event(1))
    numpyro.sample("y_init", dist.LogNormal(jnp.log(first), sigma), obs=data["y_init"])
    later = jnp.log(populations(jnp.asarray(theta), jnp.asarray(first), len(data["ts"])))
    numpyro.sample("y", dist.LogNormal(later, sigma), obs=data["y"])


def populations(theta: jax.Array, first: jax.Array, years: int) -> jax.Array:
    """Hares and lynx at the end of each year, (year, 2)."""
    alpha, beta, gamma, delta = theta
    step = 1.0 / STEPS

    def slope(z: jax.Array) -> jax.Array:
        hare, lynx = z
        return jnp.stack([(alpha - beta * lynx) * hare, (-gamma + delta * hare) * lynx])

    def advance(z: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        k1 = slope(z)
        k2 = slope(z + step / 2 * k1)
        k3 = slope(z + step / 2 * k2)
        k4 = slope(z + step * k3)
        z = z + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return z, z

    _, all_steps = jax.lax.scan(advance, first, length=years * STEPS)
    return all_steps[STEPS - 1 :: STEPS]


# From Stan's starts a run of 80 chains had not ended after five minutes, and was stopped.
MODELS = (
    Model("hudson_lynx_hare-lotka_volterra", lotka_volterra, tolerance=5e-4, start=init_to_median),
)
