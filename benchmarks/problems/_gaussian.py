r"""A correlated Gaussian in three dimensions, and smooth functions that no polynomial equals.

With $X \sim N(m, v)$, the expectations are
$E e^{X/2} = e^{m/2 + v/8}$, $E \sin X = e^{-v/2} \sin m$,
$E[X \operatorname{erf} X] = m \operatorname{erf}(m / w) + (2 v / \sqrt{\pi} w)\, e^{-m^2 / w^2}$ with
$w^2 = 1 + 2 v$, and by Stein's lemma $E[Y \sin X] = E[Y]\, E \sin X + \operatorname{cov}(X, Y)\, E \cos X$.
"""

from math import cos, erf, exp, pi, sin, sqrt

import numpy as np

from ._problem import Integrand, Problem

MEAN = np.array([0.5, 0.0, -0.5])
COVARIANCE = np.array([[1.0, 0.6, 0.3], [0.6, 1.5, -0.4], [0.3, -0.4, 0.8]])
ROOT = np.linalg.cholesky(COVARIANCE)


def gaussian() -> Problem:
    """The Gaussian of x = MEAN + ROOT z."""
    inverse = np.linalg.inv(COVARIANCE)
    along = np.array([0.5, 1.0, 0.0])
    m, v = float(along @ MEAN), float(along @ COVARIANCE @ along)
    last, spread = float(MEAN[2]), float(COVARIANCE[2, 2])
    w = sqrt(1 + 2 * spread)
    bent = last * erf(last / w) + 2 * spread / (sqrt(pi) * w) * exp(-((last / w) ** 2))
    stein = MEAN[0] * sin(last) + COVARIANCE[0, 2] * cos(last)
    return Problem(
        "Gaussian",
        3,
        lambda rng, n: MEAN + rng.normal(size=(n, 3)) @ ROOT.T,
        lambda x: -(x - MEAN) @ inverse,
        (
            Integrand(
                "exp(x0/2)",
                lambda x: np.exp(x[..., 0] / 2),
                exp(MEAN[0] / 2 + COVARIANCE[0, 0] / 8),
            ),
            Integrand("sin(x1+x0/2)", lambda x: np.sin(x @ along), exp(-v / 2) * sin(m)),
            Integrand("x2 erf(x2)", lambda x: x[..., 2] * _erf(x[..., 2]), bent),
            Integrand(
                "x0 sin(x2)",
                lambda x: x[..., 0] * np.sin(x[..., 2]),
                float(stein * exp(-spread / 2)),
            ),
        ),
    )


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf as of_array

    return of_array(x)
