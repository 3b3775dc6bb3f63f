"""Eight schools, twice: as a funnel, which NUTS does not like, and without it."""

import numpyro
import numpyro.distributions as dist

from ._model import Model


def eight_schools_centered(data: dict) -> None:
    """The effects themselves are the parameters: a funnel."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]).to_event(1))
    numpyro.sample("y", dist.Normal(theta, data["sigma"]), obs=data["y"])


def eight_schools_noncentered(data: dict) -> None:
    """The standardised effects are the parameters."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    standard = numpyro.sample("theta_trans", dist.Normal(0, 1).expand([8]).to_event(1))
    theta = numpyro.deterministic("theta", mu + tau * standard)
    numpyro.sample("y", dist.Normal(theta, data["sigma"]), obs=data["y"])


MODELS = (
    Model("eight_schools-eight_schools_centered", eight_schools_centered),
    Model("eight_schools-eight_schools_noncentered", eight_schools_noncentered),
)
