"""Probabilities of half-spaces, a ball and a quadrant under the correlated Gaussian."""

from dataclasses import replace

import numpy as np
from scipy.special import gammainc, ndtr

from ._gaussian import COVARIANCE, MEAN, ROOT, gaussian
from ._problem import Array, Integrand, Problem


def indicators() -> Problem:
    """Functions that jump: no control variate of a smooth family follows them."""
    scale = np.sqrt(np.diag(COVARIANCE))
    correlation = COVARIANCE[0, 1] / (scale[0] * scale[1])
    inverse = np.linalg.inv(ROOT)

    def z(x: Array) -> Array:
        return (x - MEAN) / scale

    def ball(x: Array) -> Array:
        return (((x - MEAN) @ inverse.T) ** 2).sum(-1) < 2.0

    return replace(
        gaussian(),
        name="indicators",
        integrands=(
            Integrand("half", lambda x: 1.0 * (z(x)[..., 0] > 0), 0.5),
            Integrand("tail", lambda x: 1.0 * (z(x)[..., 0] > 1.5), float(ndtr(-1.5))),
            Integrand("ball", lambda x: 1.0 * ball(x), float(gammainc(1.5, 1.0))),
            Integrand(
                "quadrant",
                lambda x: 1.0 * ((z(x)[..., 0] > 0) & (z(x)[..., 1] > 0)),
                float(0.25 + np.arcsin(correlation) / (2 * np.pi)),
            ),
        ),
    )
