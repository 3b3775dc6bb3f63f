"""Bayesian logistic regressions, and draws of their posteriors by NUTS."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

STEP, ACCEPTED = 0.4, 0.7  # the first step, and the share of proposals that it is adapted to
DOUBLINGS = 6  # of a trajectory, at most: it turns around much sooner in these coordinates


@dataclass(frozen=True)
class Regression:
    """A logistic regression with a Gaussian prior, and points to be classified.

    Attributes:
        predictors: (row, dim).
        labels: 0 or 1, (row,).
        prior_sd: of each coefficient, (dim,).
        points: (k, dim), none of which was fitted to.
    """

    predictors: np.ndarray
    labels: np.ndarray
    prior_sd: np.ndarray
    points: np.ndarray

    def score(self, beta: np.ndarray) -> np.ndarray:
        """The gradient of the log density of the posterior, (..., dim)."""
        left = self.labels - expit(beta @ self.predictors.T)
        return left @ self.predictors - beta / self.prior_sd**2

    def precision(self, beta: np.ndarray) -> np.ndarray:
        """Minus the matrix of second derivatives."""
        p = expit(self.predictors @ beta)
        curved = (self.predictors.T * (p * (1 - p))) @ self.predictors
        return curved + np.diag(self.prior_sd**-2)

    def mode(self) -> np.ndarray:
        """The mode, by Newton's method."""
        beta = np.zeros(len(self.prior_sd))
        for _ in range(50):
            step = np.linalg.solve(self.precision(beta), self.score(beta))
            beta = beta + step
            if np.abs(step).max() < 1e-10:
                return beta
        raise RuntimeError("Newton's method did not find the mode.")


def sampled(
    regression: Regression, chains: int, length: int, warm_up: int
) -> dict[str, np.ndarray]:
    """Draws of the posterior, scores and the probabilities at the points, (chain, draw, ...).

    By NumPyro's NUTS, all chains at once, in coordinates that the curvature at the mode makes round.
    """
    import jax
    import jax.numpy as jnp
    import numpyro

    mode = regression.mode()
    root = np.linalg.inv(np.linalg.cholesky(regression.precision(mode))).T
    with jax.enable_x64(True):
        x, y, factor, centre, sd = map(
            jnp.asarray, (regression.predictors, regression.labels, root, mode, regression.prior_sd)
        )

        def energy(u: jax.Array) -> jax.Array:
            beta = centre + factor @ u
            eta = x @ beta
            return jnp.sum(jax.nn.softplus(eta) - y * eta) + 0.5 * jnp.sum((beta / sd) ** 2)

        kernel = numpyro.infer.NUTS(
            potential_fn=energy,
            step_size=STEP,
            target_accept_prob=ACCEPTED,
            adapt_mass_matrix=False,
            max_tree_depth=DOUBLINGS,
        )
        sampler = numpyro.infer.MCMC(
            kernel,
            num_warmup=warm_up,
            num_samples=length,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        start = jax.random.normal(jax.random.key(7), (chains, len(mode)))
        fields = ("diverging", "num_steps")
        sampler.run(jax.random.key(8), init_params=start, extra_fields=fields)
        draws = mode + np.asarray(sampler.get_samples(group_by_chain=True)) @ root.T
        extra = {k: np.asarray(v) for k, v in sampler.get_extra_fields(True).items()}
    return {
        "draws": draws,
        "scores": regression.score(draws),
        "values": expit(draws @ regression.points.T),
        "diverging": extra["diverging"],
        "steps": extra["num_steps"],
    }
