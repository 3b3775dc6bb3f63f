"""Linear regressions: flat or weak priors, correlated coefficients, nearly normal posteriors."""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.distributions import constraints

from ._model import Model, flat, flat_on


def kidscore_interaction(data: dict) -> None:
    """Test scores of children on the mother's schooling, her IQ and their product."""
    high_school, iq = data["mom_hs"], data["mom_iq"]
    beta = numpyro.sample("beta", flat(4))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    mean = jnp.stack([jnp.ones_like(iq), high_school, iq, high_school * iq], axis=1) @ beta
    numpyro.sample("kid_score", dist.Normal(mean, sigma), obs=data["kid_score"])


def logearn_interaction(data: dict) -> None:
    """Log earnings on height, sex and their product."""
    height, male = data["height"], data["male"]
    beta = numpyro.sample("beta", flat(4))
    sigma = numpyro.sample("sigma", flat_on(constraints.positive))
    mean = jnp.stack([jnp.ones_like(height), height, male, height * male], axis=1) @ beta
    numpyro.sample("log_earn", dist.Normal(mean, sigma), obs=jnp.log(data["earn"]))


def mesquite(data: dict) -> None:
    """Weight of mesquite bushes on six measurements, without logarithms."""
    names = ("diam1", "diam2", "canopy_height", "total_height", "density", "group")
    beta = numpyro.sample("beta", flat(7))
    sigma = numpyro.sample("sigma", flat_on(constraints.positive))
    columns = [jnp.ones_like(data["weight"]), *(data[name] for name in names)]
    mean = jnp.stack(columns, axis=1) @ beta
    numpyro.sample("weight", dist.Normal(mean, sigma), obs=data["weight"])


def logmesquite_logvas(data: dict) -> None:
    """Log weight of mesquite bushes on log volume, area and shape, and more: collinear."""
    area = data["diam1"] * data["diam2"]
    logs = [
        area * data["canopy_height"],
        area,
        data["diam1"] / data["diam2"],
        data["total_height"],
        data["density"],
    ]
    beta = numpyro.sample("beta", flat(7))
    sigma = numpyro.sample("sigma", flat_on(constraints.positive))
    columns = [jnp.ones_like(area), *(jnp.log(column) for column in logs), data["group"]]
    mean = jnp.stack(columns, axis=1) @ beta
    numpyro.sample("log_weight", dist.Normal(mean, sigma), obs=jnp.log(data["weight"]))


def nes(data: dict) -> None:
    """Party identification in 1980 on nine predictors."""
    age = data["age_discrete"]
    columns = [
        jnp.ones_like(age),
        data["real_ideo"],
        data["race_adj"],
        *(1.0 * (age == group) for group in (2, 3, 4)),
        data["educ1"],
        data["gender"],
        data["income"],
    ]
    beta = numpyro.sample("beta", flat(9))
    sigma = numpyro.sample("sigma", flat_on(constraints.positive))
    mean = jnp.stack(columns, axis=1) @ beta
    numpyro.sample("partyid7", dist.Normal(mean, sigma), obs=data["partyid7"])


def blr(data: dict) -> None:
    """A linear regression with normal priors."""
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([5]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(10))
    numpyro.sample("y", dist.Normal(data["X"] @ beta, sigma), obs=data["y"])


def kilpisjarvi(data: dict) -> None:
    """Temperatures on the year, not centred: intercept and slope of correlation near -1."""
    alpha = numpyro.sample("alpha", dist.Normal(data["pmualpha"], data["psalpha"]))
    beta = numpyro.sample("beta", dist.Normal(data["pmubeta"], data["psbeta"]))
    sigma = numpyro.sample("sigma", flat_on(constraints.positive))
    numpyro.sample("y", dist.Normal(alpha + beta * data["x"], sigma), obs=data["y"])


MODELS = (
    Model("kidiq-kidscore_interaction", kidscore_interaction),
    Model("earnings-logearn_interaction", logearn_interaction),
    Model("mesquite-mesquite", mesquite),
    Model("mesquite-logmesquite_logvas", logmesquite_logvas),
    Model("nes1980-nes", nes),
    Model("sblri-blr", blr),
    Model("kilpisjarvi_mod-kilpisjarvi", kilpisjarvi),
)
