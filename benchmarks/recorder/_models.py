"""Two log densities: an epidemic, by a differential equation, and logistic regression on Sonar."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from .._data import data_folder

IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
BOYS, DAYS = 763.0, 14  # of an English boarding school, British Medical Journal, 4 March 1978
CENTRE, WIDTH = np.log([2.0, 0.4, 1.0, 10.0]), np.array([0.5, 0.5, 1.0, 1.0])
POINTS = 10  # of Sonar, whose probabilities are estimated, and as many coefficients


@dataclass(frozen=True)
class Model:
    """A posterior: its log density, where chains start, and the quantities whose means are estimated."""

    log_density: Callable[[Any], Any]
    centre: np.ndarray
    spread: float
    constrain: Callable[[Any], dict[str, Any]]
    wanted: tuple[str, ...]

    def starts(self, seed: int, chains: int) -> np.ndarray:
        """Positions to start from, (chain, dim)."""
        noise = np.random.default_rng(seed).normal(size=(chains, len(self.centre)))
        return self.centre + self.spread * noise


def forward(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function, whose gradient is computed in forward mode when reverse mode is asked for."""

    @jax.custom_jvp
    def value(x: Any) -> Any:
        return fn(x)

    @value.defjvp
    def _(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
        gradient, found = jax.jacfwd(lambda x: (fn(x),) * 2, has_aux=True)(*primals)
        return found, gradient @ tangents[0]

    return value


def ill(beta: Any, gamma: Any, start: Any) -> Any:
    """The number of boys who are ill on each day, by the SIR equation."""

    def slope(t: Any, state: Any, rates: Any) -> Any:
        infections = rates[0] * state[0] * state[1] / BOYS
        return jnp.stack([-infections, infections - rates[1] * state[1]])

    return diffrax.diffeqsolve(
        diffrax.ODETerm(slope),
        diffrax.Tsit5(),
        t0=0.0,
        t1=float(DAYS),
        dt0=0.25,
        y0=jnp.stack([BOYS - start, start]),
        args=(beta, gamma),
        saveat=diffrax.SaveAt(ts=jnp.arange(1.0, DAYS + 1)),
        adjoint=diffrax.ForwardMode(),
        max_steps=64,
    ).ys[:, 1]


def epidemic() -> Model:
    """Influenza in a boarding school: an SIR equation with four positive unknowns, as logarithms."""

    def log_density(z: Any) -> Any:
        beta, gamma, start, phi = jnp.exp(z)
        mean = jnp.maximum(ill(beta, gamma, start), 1e-9)
        count = gammaln(IN_BED + phi) - gammaln(phi) + phi * jnp.log(phi / (phi + mean))
        likelihood = jnp.sum(count + IN_BED * jnp.log(mean / (phi + mean)))
        return likelihood - jnp.sum(((z - CENTRE) / WIDTH) ** 2) / 2

    def constrain(z: Any) -> dict[str, Any]:
        beta, gamma, start, phi = jnp.exp(z)
        return {"beta": beta, "gamma": gamma, "start": start, "phi": phi, "ratio": beta / gamma}

    wanted = ("beta", "gamma", "start", "phi", "ratio")
    return Model(forward(log_density), CENTRE, 0.3, constrain, wanted)


def sonar() -> Model:
    """Logistic regression in 61 dimensions: ten coefficients, and the probabilities of ten points."""
    with np.load(data_folder("sonar") / "sonar_generated_nuts.npz") as stored:
        x, y, sd = (jnp.asarray(stored[name]) for name in ("X", "y", "prior_sd"))

    def log_density(b: Any) -> Any:
        logit = x @ b
        return jnp.sum(y * logit - jax.nn.softplus(logit)) - jnp.sum((b / sd) ** 2) / 2

    def constrain(b: Any) -> dict[str, Any]:
        return {"b": b[:POINTS], "p": jax.nn.sigmoid(x[:POINTS] @ b)}

    return Model(log_density, np.zeros(x.shape[1]), 0.3, constrain, ("b", "p"))


MODELS: dict[str, Callable[[], Model]] = {"epidemic": epidemic, "Sonar": sonar}
