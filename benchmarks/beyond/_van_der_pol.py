"""Draws from power posteriors of van der Pol's oscillator: one parameter, eleven observations.

`chains` are 31 chains of 500 draws (Oates, Girolami and Chopin 2017), `particles` one run of sequential
Monte Carlo with 50 particles and 8 temperatures (the package ZVCV). The parameter is log theta, and its
prior N(0, 0.25^2).
"""

from functools import lru_cache

import numpy as np
from scipy.integrate import solve_ivp
from scipy.io import loadmat

import steinax as sx

from .._data import data_folder

PRIOR_SD, NOISE = 0.25, 0.1
CONSTANT = -np.log(NOISE * np.sqrt(2 * np.pi))  # of the density of one observation


def chains() -> sx.Tempered:
    """The draws of 31 chains. Their file has scores in theta, and the observations' constant twice."""
    found = loadmat(data_folder("van_der_pol") / "TI_samples.mat")
    theta, t = found["theta"][0], found["ti"].ravel()
    x, score = np.log(theta), theta * (-2 * found["z"][0]) + 1
    prior = -x / PRIOR_SD**2
    with np.errstate(invalid="ignore", divide="ignore"):
        likelihood = np.where(t[:, None] > 0, (score - prior) / t[:, None], 0.0)
    values = found["loglike"].T - len(observations()) * CONSTANT
    return sx.Tempered(x[..., None], values, likelihood[..., None], prior[..., None], t)


def particles() -> sx.Tempered:
    """The particles of sequential Monte Carlo."""
    import rdata

    raw = rdata.read_rda(data_folder("van_der_pol") / "ZVCV_VDP.rda")["VDP"]
    found = {str(name): np.moveaxis(np.asarray(one), -1, 0) for name, one in raw.items()}
    arrays = (found[name] for name in ("samples", "loglike", "der_loglike", "der_logprior"))
    return sx.Tempered(*arrays, found["temperatures"].ravel())


def observations() -> np.ndarray:
    """The observed positions at the times 0, 1, ..., 10."""
    return loadmat(data_folder("van_der_pol") / "TI_data.mat")["y"].ravel()


def log_likelihood(theta: float, y: np.ndarray) -> float:
    """From the differential equation, solved to nine digits."""

    def speed(_: float, u: np.ndarray) -> list[float]:
        return [u[1], theta * (1 - u[0] ** 2) * u[1] - u[0]]

    times = np.arange(len(y))
    path = solve_ivp(speed, (0, times[-1]), [0, 2], "DOP853", times, rtol=1e-9, atol=1e-9).y[0]
    return float(len(y) * CONSTANT - np.sum((y - path) ** 2) / (2 * NOISE**2))


@lru_cache
def truth() -> float:
    """The log evidence by quadrature over log theta."""
    x, y = np.linspace(-1.2, 1.2, 241), observations()
    exact = np.array([log_likelihood(theta, y) for theta in np.exp(x)])
    log_prior = -(x**2) / (2 * PRIOR_SD**2) - np.log(PRIOR_SD * np.sqrt(2 * np.pi))
    return float(np.log(np.sum(np.exp(exact + log_prior)) * (x[1] - x[0])))
