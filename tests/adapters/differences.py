"""Gradients by finite differences, to ten digits: what scores are compared with."""

from collections.abc import Callable

import numpy as np

# Weights of f(x + k h) - f(x - k h) in the derivative of order h^6.
WEIGHTS = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
STEP = 1e-2  # truncation is of order STEP^6 = 1e-12, and rounding of order 1e-16 |f| / STEP


def differences(log_density: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    r"""The gradient of a log density at one point (dim,), by the central stencil of sixth order.

    $$\partial_j f(x) = \frac{1}{h} \sum_{k=1}^3 w_k (f(x + k h e_j) - f(x - k h e_j)) + O(h^6)$$
    """
    x = np.asarray(x, dtype=np.float64)
    found = np.zeros(x.size)
    for j in range(x.size):
        step = np.zeros(x.size)
        step[j] = STEP
        for k, weight in WEIGHTS.items():
            up, down = x + k * step, x - k * step
            rise = float(log_density(up)) - float(log_density(down))
            found[j] += weight * rise / STEP
    return found
