"""One model with a vector, a positive, a simplex and a correlation-Cholesky parameter, for all samplers.

beta ~ Normal(0, 2) in R^3            tau ~ LogNormal(0, 1)
w ~ Dirichlet(2, 2, 2, 2)             L ~ LKJCholesky(3, eta = 2)
Y[i] ~ MultivariateNormal(beta, scale_tril = tau L)     COUNTS ~ Multinomial(sum, w)
"""

import numpy as np

NAMES = ("beta", "tau", "w", "L")
DIMENSIONS = 10  # 3 + 1 + 3 + 3
CONCENTRATION = np.full(4, 2.0)
ETA = 2.0
COUNTS = np.array([12, 7, 4, 9])


def _observations() -> np.ndarray:
    correlation = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])
    noise = np.random.default_rng(20261115).normal(size=(30, 3))
    return np.array([1.0, -0.5, 0.3]) + 0.8 * noise @ np.linalg.cholesky(correlation).T


Y = _observations()
