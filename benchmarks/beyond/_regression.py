"""A linear regression whose evidence and power posteriors are known."""

import math

import numpy as np

import steinax as sx

ROWS, COLUMNS, SHAPE, RATE = 30, 5, 3.0, 2.0  # the variance is inverse gamma


class Regression:
    r"""$y \sim N(X \beta, \sigma^2)$, $\beta \sim N(0, \sigma^2)$, $\sigma^2 \sim IG(3, 2)$.

    A draw is $(\beta, \log \sigma^2)$.
    """

    def __init__(self, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(ROWS, COLUMNS))
        self.y = self.x @ rng.normal(size=COLUMNS) * 0.7 + rng.normal(size=ROWS)

    def posterior(self, t: float) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Precision (over the variance) and mean of the coefficients, shape and rate of the variance."""
        precision = np.eye(COLUMNS) + t * self.x.T @ self.x
        mean = np.linalg.solve(precision, t * self.x.T @ self.y)
        rate = RATE + (t * self.y @ self.y - mean @ precision @ mean) / 2
        return precision, mean, SHAPE + t * ROWS / 2, float(rate)

    @property
    def log_evidence(self) -> float:
        """In closed form."""
        precision, _, shape, rate = self.posterior(1.0)
        constant = -ROWS / 2 * math.log(2 * math.pi) - np.linalg.slogdet(precision)[1] / 2
        gammas = math.lgamma(shape) - math.lgamma(SHAPE)
        return float(constant + gammas + SHAPE * math.log(RATE) - shape * math.log(rate))

    def tempered(self, temperatures: np.ndarray, draws: int, seed: int) -> sx.Tempered:
        """Independent draws at each inverse temperature."""
        rng = np.random.default_rng(seed)
        parts = [self._at(t, draws, rng) for t in temperatures]
        return sx.Tempered(*(np.stack(part) for part in zip(*parts, strict=True)), temperatures)

    def _at(self, t: float, draws: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        precision, mean, shape, rate = self.posterior(t)
        variance = rate / rng.gamma(shape, size=draws)
        root = np.linalg.cholesky(np.linalg.inv(precision))
        around = rng.normal(size=(draws, COLUMNS)) @ root.T
        beta = mean + np.sqrt(variance)[:, None] * around
        rest = self.y - beta @ self.x.T
        half = np.sum(rest**2, axis=1) / (2 * variance)
        value = -ROWS / 2 * np.log(2 * np.pi * variance) - half
        likelihood = np.c_[rest @ self.x / variance[:, None], half - ROWS / 2]
        of_beta = np.sum(beta**2, axis=1) / (2 * variance)
        of_variance = of_beta - COLUMNS / 2 - SHAPE + RATE / variance
        prior = np.c_[-beta / variance[:, None], of_variance]
        return np.c_[beta, np.log(variance)], value, likelihood, prior
