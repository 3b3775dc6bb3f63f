"""The shared model in NumPyro, and a short run of it."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

import steinax as sx
from adapters.shared_model import CONCENTRATION, COUNTS, ETA, Y
from steinax.adapters._numpyro import from_numpyro

FIELDS = ("z_grad",)
EXACT = ("z_grad", "potential_energy", "z.L", "z.beta", "z.tau", "z.w")


def model(y: Any, counts: Any) -> None:
    beta = numpyro.sample("beta", dist.Normal(jnp.zeros(3), 2.0).to_event(1))
    tau = numpyro.sample("tau", dist.LogNormal(0.0, 1.0))
    w = numpyro.sample("w", dist.Dirichlet(jnp.asarray(CONCENTRATION)))
    L = numpyro.sample("L", dist.LKJCholesky(3, ETA))
    numpyro.sample("y", dist.MultivariateNormal(beta, scale_tril=tau * L), obs=y)
    numpyro.sample("counts", dist.Multinomial(total_count=int(COUNTS.sum()), probs=w), obs=counts)


def run(extra_fields: tuple[str, ...] = EXACT, draws: int = 500, double: bool = True) -> MCMC:
    """Four chains side by side, in double precision unless told otherwise."""
    with jax.enable_x64(double):
        mcmc = MCMC(
            NUTS(model),
            num_warmup=500,
            num_samples=draws,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        data = jnp.asarray(Y), jnp.asarray(COUNTS)
        mcmc.run(jax.random.key(5), *data, extra_fields=extra_fields)
    return mcmc


@cache
def numpyro_sample() -> sx.Sample:
    """4 chains of 500 draws, with the scores that the sampler stored."""
    return from_numpyro(run())
