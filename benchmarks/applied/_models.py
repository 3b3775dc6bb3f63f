"""Posteriors that people fit, in 20 to 300 dimensions: log densities in jax, and what is estimated."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import sigmoid, softplus
from jax.scipy.special import gammaln

from .._data import data_folder

type Position = dict[str, Any]


class Target(NamedTuple):
    """A posterior on unconstrained coordinates.

    Attributes:
        log_density: of a position, a dict of scalars and vectors.
        start: a position of the right shapes, around which chains start.
        quantities: of one position: a dict of kinds ("means", "predictions", ...) of vectors. Means are also
            estimated as standard deviations are, by their squares.
    """

    log_density: Callable[[Position], Any]
    start: Position
    quantities: Callable[[Position], dict[str, Any]]


def bernoulli(y: Any, logit: Any) -> Any:
    """The log likelihood of outcomes 0 and 1."""
    return jnp.sum(y * logit - softplus(logit))


def logistic(x: np.ndarray, y: np.ndarray, sd: Any) -> Target:
    """Logistic regression: the first coefficients, and probabilities of the first rows."""

    def log_density(z: Position) -> Any:
        return bernoulli(y, x @ z["beta"]) - jnp.sum((z["beta"] / sd) ** 2) / 2

    def quantities(z: Position) -> dict[str, Any]:
        beta = z["beta"]
        return {
            "means": beta[:6],
            "predictions": sigmoid(x[:4] @ beta),
            "contrasts": beta[1:2] - beta[2:3],
        }

    return Target(log_density, {"beta": np.zeros(x.shape[1])}, quantities)


def synthetic_logistic(dim: int, rows: int) -> Callable[[], Target]:
    """Correlated normal covariates, an intercept, and coefficients of size one over the root of `dim`."""

    def make() -> Target:
        rng = np.random.default_rng(dim)
        common = rng.normal(size=(rows, 1))
        x = 0.5 * common + rng.normal(size=(rows, dim - 1))
        x = np.concatenate([np.ones((rows, 1)), x], axis=1)
        y = rng.random(rows) < 1 / (1 + np.exp(-x @ rng.normal(size=dim) / np.sqrt(dim) * 2))
        return logistic(x, 1.0 * y, 1.0)

    return make


def sonar() -> Target:
    """Sonar returns from mines and rocks, 208 rows."""
    with np.load(data_folder("sonar") / "sonar_generated_nuts.npz") as stored:
        x, y, sd = (np.asarray(stored[name]) for name in ("X", "y", "prior_sd"))
    return logistic(x, y, sd)


def german_credit() -> Target:
    """Credit risk of 1,000 customers on 24 standardised covariates."""
    table = np.loadtxt(data_folder("german_credit") / "german.data-numeric")
    x, y = table[:, :-1], table[:, -1] - 1
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return logistic(np.concatenate([np.ones((len(x), 1)), x], axis=1), y, 1.0)


def members(theta: Any, mu: Any, tau: Any, response: Callable[[Any], Any]) -> dict[str, Any]:
    """The quantities of a hierarchy."""
    return {
        "means": jnp.stack([mu, tau, theta[0], theta[1], theta[-1]]),
        "predictions": jnp.stack([response(theta[2]), jnp.mean(response(theta))]),
        "contrasts": theta[3:4] - theta[4:5],
    }


def normal_hierarchy(centred: bool) -> Callable[[], Target]:
    """50 groups with unequal known errors: small ones if centred, where that parametrisation mixes well."""

    def make() -> Target:
        rng = np.random.default_rng(50)
        error = rng.uniform(0.2, 0.8, size=50) if centred else rng.uniform(0.5, 2.0, size=50)
        y = 1.0 + rng.normal(size=50) + error * rng.normal(size=50)

        def theta_of(z: Position) -> Any:
            return z["theta"] if centred else z["mu"] + jnp.exp(z["log_tau"]) * z["theta"]

        def log_density(z: Position) -> Any:
            mu, t, theta = z["mu"], z["log_tau"], theta_of(z)
            inside = (theta - mu) * jnp.exp(-t)
            width = 50 * t if centred else 0.0
            prior = -(mu**2) / 50 - jnp.exp(2 * t) / 8 + t
            return prior - width - jnp.sum(inside**2) / 2 - jnp.sum(((y - theta) / error) ** 2) / 2

        def quantities(z: Position) -> dict[str, Any]:
            return members(theta_of(z), z["mu"], jnp.exp(z["log_tau"]), jnp.exp)

        start = {"log_tau": np.zeros(()), "mu": np.zeros(()), "theta": np.zeros(50)}
        return Target(log_density, start, quantities)

    return make


def logistic_hierarchy() -> Target:
    """300 groups of 5 to 20 trials."""
    rng = np.random.default_rng(300)
    count = rng.integers(5, 20, size=300)
    y = rng.binomial(count, 1 / (1 + np.exp(-0.5 - 0.8 * rng.normal(size=300))))

    def log_density(z: Position) -> Any:
        mu, t, theta = z["mu"], z["log_tau"], z["theta"]
        inside = (theta - mu) * jnp.exp(-t)
        prior = -(mu**2) / 8 - jnp.exp(2 * t) / 2 + t - 300 * t - jnp.sum(inside**2) / 2
        return prior + jnp.sum(y * theta - count * softplus(theta))

    def quantities(z: Position) -> dict[str, Any]:
        return members(z["theta"], z["mu"], jnp.exp(z["log_tau"]), sigmoid)

    start = {"log_tau": np.zeros(()), "mu": np.zeros(()), "theta": np.zeros(300)}
    return Target(log_density, start, quantities)


def item_response() -> Target:
    """120 persons answer 100 questions: abilities, difficulties, and the spread of both."""
    rng = np.random.default_rng(120)
    truth = rng.normal(size=(120, 1)) - 0.3 - rng.normal(size=100)
    y = 1.0 * (rng.random((120, 100)) < 1 / (1 + np.exp(-truth)))

    def log_density(z: Position) -> Any:
        ability, difficulty, t = z["ability"], z["difficulty"], z["log_spread"]
        prior = -jnp.sum(ability**2) / 2 - z["mean"] ** 2 / 2 - jnp.exp(2 * t) / 2 + t - 100 * t
        prior -= jnp.sum(((difficulty - z["mean"]) * jnp.exp(-t)) ** 2) / 2
        return prior + bernoulli(y, ability[:, None] - difficulty)

    def quantities(z: Position) -> dict[str, Any]:
        ability, difficulty = z["ability"], z["difficulty"]
        return {
            "means": jnp.stack([z["mean"], jnp.exp(z["log_spread"]), ability[0], difficulty[0]]),
            "predictions": sigmoid(ability[:3] - difficulty[:3]),
            "contrasts": ability[1:2] - ability[2:3],
        }

    scalars = {"log_spread": np.zeros(()), "mean": np.zeros(())}
    return Target(
        log_density, {"ability": np.zeros(120), "difficulty": np.zeros(100)} | scalars, quantities
    )


def horseshoe() -> Target:
    """50 coefficients of which five are not zero, 100 rows, non-centred, half-Cauchy scales."""
    rng = np.random.default_rng(51)
    x = rng.normal(size=(100, 50))
    y = x[:, :5] @ np.array([2.0, -1.5, 1.0, 0.7, -0.5]) + rng.normal(size=100)

    def beta_of(z: Position) -> Any:
        return z["raw"] * jnp.exp(z["log_local"] + z["log_global"])

    def log_density(z: Position) -> Any:
        local, scale, noise = z["log_local"], z["log_global"], z["log_noise"]
        prior = -jnp.sum(z["raw"] ** 2) / 2 + jnp.sum(local - jnp.log1p(jnp.exp(2 * local)))
        prior += (
            scale - jnp.log1p(jnp.exp(2 * (scale - np.log(0.1)))) + noise - jnp.exp(2 * noise) / 8
        )
        return prior - 100 * noise - jnp.sum((y - x @ beta_of(z)) ** 2) * jnp.exp(-2 * noise) / 2

    def quantities(z: Position) -> dict[str, Any]:
        beta = beta_of(z)
        return {
            "means": jnp.concatenate([beta[:4], beta[20:21], jnp.exp(z["log_noise"])[None]]),
            "predictions": x[:3] @ beta,
            "contrasts": beta[2:3] - beta[3:4],
        }

    scalars = {"log_global": np.array(-2.0), "log_noise": np.zeros(())}
    return Target(
        log_density, {"raw": np.zeros(50), "log_local": np.zeros(50)} | scalars, quantities
    )


def gaussian_process() -> Target:
    """100 counts whose log intensity is a Gaussian process of known length-scale, non-centred."""
    rng = np.random.default_rng(100)
    at = np.linspace(0, 1, 100)
    y = rng.poisson(np.exp(1.0 + np.sin(7 * at)))
    apart = (at[:, None] - at) / 0.2
    factor = np.linalg.cholesky(np.exp(-(apart**2) / 2) + 1e-6 * np.eye(100))

    def latent(z: Position) -> Any:
        return z["mean"] + jnp.exp(z["log_scale"]) * factor @ z["raw"]

    def log_density(z: Position) -> Any:
        f, scale = latent(z), z["log_scale"]
        prior = -jnp.sum(z["raw"] ** 2) / 2 - z["mean"] ** 2 / 8 - jnp.exp(2 * scale) / 2 + scale
        return prior + jnp.sum(y * f - jnp.exp(f) - gammaln(y + 1.0))

    def quantities(z: Position) -> dict[str, Any]:
        f = latent(z)
        return {
            "means": jnp.stack([z["mean"], jnp.exp(z["log_scale"]), f[10], f[50]]),
            "predictions": jnp.exp(f[np.array([5, 45, 95])]),
            "contrasts": f[20:21] - f[70:71],
        }

    scalars = {"log_scale": np.zeros(()), "mean": np.ones(())}
    return Target(log_density, {"raw": np.zeros(100)} | scalars, quantities)


def network() -> Target:
    """A network with one hidden layer of eight units on three covariates: its predictions only.

    The units may be exchanged, so weights have no meaning one by one.
    """
    rng = np.random.default_rng(8)
    x = rng.normal(size=(150, 3))
    y = np.tanh(x[:, 0] - x[:, 1]) + 0.5 * x[:, 2] + 0.3 * rng.normal(size=150)

    def output(z: Position, x: Any) -> Any:
        hidden = jnp.tanh(x @ z["inner"].reshape(3, 8) + z["offset"])
        return hidden @ z["outer"] / np.sqrt(8) + z["bias"]

    def log_density(z: Position) -> Any:
        prior = -sum(jnp.sum(z[name] ** 2) for name in ("inner", "offset", "outer", "bias")) / 2
        return prior - jnp.sum((y - output(z, x)) ** 2) / (2 * 0.3**2)

    def quantities(z: Position) -> dict[str, Any]:
        found = output(z, x[:6])
        return {
            "predictions": found[:4],
            "contrasts": found[4:5] - found[5:6],
        }

    zeros = {
        "bias": np.zeros(()),
        "inner": np.zeros(24),
        "offset": np.zeros(8),
        "outer": np.zeros(8),
    }
    return Target(log_density, zeros, quantities)


def varying_slopes() -> Target:
    """85 counties with an intercept and a slope each, 10 houses a county: like the radon data."""
    rng = np.random.default_rng(85)
    county = np.repeat(np.arange(85), 10)
    floor = 1.0 * (rng.random(850) < 0.3)
    a, b = 1.3 + 0.4 * rng.normal(size=85), -0.6 + 0.3 * rng.normal(size=85)
    y = a[county] + b[county] * floor + 0.7 * rng.normal(size=850)

    def of(z: Position, name: str) -> Any:
        return z[f"mean_{name}"] + jnp.exp(z[f"log_sd_{name}"]) * z[name]

    def log_density(z: Position) -> Any:
        prior = -jnp.sum(z["a"] ** 2) / 2 - jnp.sum(z["b"] ** 2) / 2
        for name in ("a", "b"):
            t = z[f"log_sd_{name}"]
            prior += -(z[f"mean_{name}"] ** 2) / 8 - jnp.exp(2 * t) / 2 + t
        mean, noise = of(z, "a")[county] + of(z, "b")[county] * floor, z["log_noise"]
        return prior - 850 * noise - jnp.sum((y - mean) ** 2) * jnp.exp(-2 * noise) / 2

    def quantities(z: Position) -> dict[str, Any]:
        a, b = of(z, "a"), of(z, "b")
        spread = [jnp.exp(z["log_sd_a"]), jnp.exp(z["log_sd_b"])]
        return {
            "means": jnp.stack([z["mean_a"], z["mean_b"], *spread, a[0], b[0]]),
            "predictions": jnp.exp(a[:3] + b[:3]),
            "contrasts": a[1:2] - a[2:3],
        }

    scalars = {
        name: np.zeros(()) for name in ("log_noise", "log_sd_a", "log_sd_b", "mean_a", "mean_b")
    }
    return Target(log_density, {"a": np.zeros(85), "b": np.zeros(85)} | scalars, quantities)


TARGETS: dict[str, Callable[[], Target]] = {
    "logistic, 20": synthetic_logistic(20, 300),
    "German credit": german_credit,
    "network": network,
    "normal hierarchy, centred": normal_hierarchy(centred=True),
    "normal hierarchy": normal_hierarchy(centred=False),
    "Sonar": sonar,
    "horseshoe": horseshoe,
    "Gaussian process": gaussian_process,
    "varying slopes": varying_slopes,
    "logistic, 200": synthetic_logistic(200, 1000),
    "item response": item_response,
    "logistic hierarchy": logistic_hierarchy,
}


def dimension(target: Target) -> int:
    """The number of coordinates."""
    return sum(np.size(value) for value in jax.tree.leaves(target.start))
