"""Realisations of a Gaussian process on draws from a Gaussian mixture, with their exact integrals."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import softmax

COMPONENTS = 5  # the paper does not say how many
SCALES = {  # of the process, by dimension; all are 1 in one dimension
    "1": lambda dim: 1.0,
    "root of d": lambda dim: dim**0.5,
    # as many length-scales between two draws, in the mean of squares: d (3 + d / 3) is the draws' variance
    "matched": lambda dim: (0.3 * dim * (3 + dim / 3)) ** 0.5,
}
JITTER = 1e-12  # of the covariance's diagonal, which is 1: noise of 1e-6 in f


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians: weights (l,), means (l, d) and covariances (l, d, d)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @classmethod
    def random(cls, dim: int, rng: np.random.Generator) -> "Mixture":
        """A mixture at random, as the paper makes it."""
        weights = rng.uniform(size=COMPONENTS)
        means = np.sqrt(3) * rng.normal(size=(COMPONENTS, dim))
        roots = rng.uniform(size=(COMPONENTS, dim, dim))
        return cls(weights / weights.sum(), means, np.swapaxes(roots, 1, 2) @ roots)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Independent draws, (n, d)."""
        which = rng.choice(COMPONENTS, n, p=self.weights)
        roots = np.linalg.cholesky(self.covariances)
        noise = rng.normal(size=(n, self.means.shape[1]))
        return self.means[which] + np.einsum("nij,nj->ni", roots[which], noise)

    def log_components(self, x: np.ndarray) -> np.ndarray:
        """The logarithm of each component's weighted density, (n, l)."""
        each = zip(self.weights, self.means, self.covariances, strict=True)
        return np.stack([np.log(w) + _log_normal(x, mean, cov) for w, mean, cov in each], -1)

    def score(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the log-density, (n, d); the paper's formula lacks the minus sign."""
        share = softmax(self.log_components(x), axis=-1)
        pulls = [
            np.linalg.solve(cov, (mean - x).T).T
            for mean, cov in zip(self.means, self.covariances, strict=True)
        ]
        return np.einsum("nl,lnd->nd", share, np.stack(pulls))

    def widened(self, variance: float) -> "Mixture":
        """The same with some variance added in every direction."""
        more = variance * np.eye(self.means.shape[1])
        return Mixture(self.weights, self.means, self.covariances + more)

    def integral_of_covariance(self, x: np.ndarray, scale: float) -> np.ndarray:
        """The covariances of f(x) with its integral, (n,)."""
        log = self.widened(scale**2).log_components(x)
        return np.exp(log + _log_volume(x.shape[1], scale)).sum(-1)

    def variance_of_integral(self, scale: float) -> float:
        """The variance of the integral of f."""
        total = 0.0
        for weight, mean, cov in zip(self.weights, self.means, self.covariances, strict=True):
            wide = Mixture(self.weights, self.means, self.covariances + cov)
            total += weight * wide.integral_of_covariance(mean[None], scale)[0]
        return float(total)


@dataclass(frozen=True)
class Realisation:
    """A Gaussian process on some draws.

    Attributes:
        values: of f, (n,).
        integral: its exact integral.
        best: the best estimate from the values that is off by c when f is: Bayesian quadrature with
            the true covariance and an unknown constant mean.
        deviation: the standard deviation of its error, given the draws; no weighted mean has less.
    """

    values: np.ndarray
    integral: float
    best: float
    deviation: float


def covariance(x: np.ndarray, y: np.ndarray, scale: float) -> np.ndarray:
    """The squared exponential with variance 1."""
    return np.exp(-cdist(x, y, "sqeuclidean") / (2 * scale**2))


def realise(mixture: Mixture, x: np.ndarray, scale: float, rng: np.random.Generator) -> Realisation:
    """Draw f(x) and the integral of f from their joint distribution."""
    n = len(x)
    root = np.linalg.cholesky(covariance(x, x, scale) + JITTER * np.eye(n))
    given = np.stack([mixture.integral_of_covariance(x, scale), np.ones(n)], axis=1)
    part, ones = solve_triangular(root, given, lower=True).T
    rest = mixture.variance_of_integral(scale) - part @ part
    if rest < -n * JITTER:
        raise ValueError(f"the joint covariance is not positive definite: {rest:.1e}.")
    rest = max(rest, 0.0)
    noise = rng.normal(size=n + 1)
    integral = part @ noise[:-1] + np.sqrt(rest) * noise[-1]
    unknown = (1 - ones @ part) / (ones @ ones)
    weights = part + unknown * ones
    deviation = np.sqrt(rest + unknown**2 * (ones @ ones))
    best = float(weights @ noise[:-1])
    return Realisation(root @ noise[:-1], float(integral), best, float(deviation))


def _log_normal(x: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    root = np.linalg.cholesky(cov)
    white = solve_triangular(root, (x - mean).T, lower=True)
    return -0.5 * (white**2).sum(0) - np.log(np.diag(root)).sum() - _log_volume(len(mean), 1.0)


def _log_volume(dim: int, scale: float) -> float:
    return dim * (0.5 * np.log(2 * np.pi) + np.log(scale))
