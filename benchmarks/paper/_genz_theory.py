"""The errors to be expected of plain Monte Carlo and of the best polynomial, by quadrature."""

import numpy as np
from scipy.special import ndtr

from ..problems import GENZ


def expected_errors(name: str, hardness: float) -> tuple[float, float]:
    """Mean absolute errors in one dimension: of 1,000 plain draws, and with a polynomial.

    The polynomial is the best of degree 2, known beforehand; it is averaged over 500 draws.
    """
    x = np.linspace(-9, 9, 400_001)
    weight = np.exp(-(x**2) / 2)
    weight /= weight.sum()
    h, _ = GENZ[name](np.array([hardness]), np.array([0.5]))
    f = h(ndtr(x)[:, None])
    f = f - weight @ f
    variance = weight @ f**2
    explained = (weight @ (f * x)) ** 2 + (weight @ (f * (x**2 - 1))) ** 2 / 2
    half_normal = np.sqrt(2 / np.pi)
    plain = half_normal * np.sqrt(variance / 1000)
    return float(plain), float(half_normal * np.sqrt((variance - explained) / 500))
