"""The exact posterior of the pumps' failure rates (Gelfand and Smith 1990), by quadrature."""

import numpy as np


def quadrature(failures: np.ndarray, hours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Values of $b$, (point, 1), and their posterior probabilities, (point,).

    Given $b$ rate i is independent of the others, a gamma variable of shape `1.8 + failures[i]` and rate
    `b + hours[i]`: all expectations are integrals over $b$ alone.
    """
    b = np.linspace(1e-4, 20, 20_001)[:, None]
    log_density = 17.1 * np.log(b[:, 0]) - b[:, 0]
    log_density -= ((1.8 + failures) * np.log(b + hours)).sum(axis=1)
    weight = np.exp(log_density - log_density.max())
    return b, weight / weight.sum()
