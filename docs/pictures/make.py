"""Make the pictures of docs/guides/pictures.md: `python docs/pictures/make.py`.

Eight schools, non-centred, sampled by NUTS of NumPyro: 4 chains of 500 draws. Keys are fixed, so that
the same versions of the packages make the same pictures. It takes about a minute.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from numpyro.infer import MCMC, NUTS

import steinax as sx
from steinax import plots

FOLDER = Path(__file__).parent
EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
SCHOOLS = ("Choate", "Deerfield", "Phillips Andover", "Phillips Exeter")
SCHOOLS += ("Hotchkiss", "Lawrenceville", "St. Paul's", "Mt. Hermon")
NAMES = ("mu", "log_tau", *(f"eta[{school}]" for school in SCHOOLS))


def log_density(x):
    """mu ~ N(0, 5), tau ~ half-Cauchy(5), theta = mu + tau eta with eta ~ N(0, 1)."""
    mu, log_tau, eta = x[0], x[1], x[2:]
    tau = jnp.exp(log_tau)
    prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + log_tau - 0.5 * jnp.sum(eta**2)
    return prior - 0.5 * jnp.sum(((EFFECTS - mu - tau * eta) / ERRORS) ** 2)


def draw() -> sx.Sample:
    with jax.enable_x64(True):
        kernel = NUTS(potential_fn=lambda x: -log_density(x), target_accept_prob=0.95)
        mcmc = MCMC(
            kernel,
            num_warmup=1000,
            num_samples=500,
            num_chains=4,
            chain_method="sequential",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(1), init_params=jnp.zeros((4, len(NAMES))))
        x = mcmc.get_samples(group_by_chain=True)
        scores = jax.vmap(jax.vmap(jax.grad(log_density)))(x)
        return sx.Sample(np.asarray(x), np.asarray(scores), names=NAMES)


def quantities() -> dict:
    """The integrands, by the names of the model."""
    theta = {
        f"theta[{school}]": lambda x, i=i: x[0] + jnp.exp(x[1]) * x[2 + i]
        for i, school in enumerate(SCHOOLS)
    }
    best = {"P(Choate is best)": lambda x: jnp.argmax(x[2:]) == 0}
    return {"mu": "mu", "tau": lambda x: jnp.exp(x[1])} | theta | best


def without_jacobian(sample: sx.Sample) -> sx.Sample:
    """The mistake of a density of tau that is used for log tau."""
    scores = sample.scores.copy()
    scores[..., 1] -= 1.0
    return sx.Sample(sample.draws, scores, names=sample.names)


def save(name: str) -> None:
    plt.savefig(FOLDER / f"{name}.png", dpi=130, metadata={"Software": None})
    plt.close("all")


def main() -> None:
    sample, f = draw(), quantities()
    estimate = sx.estimate(f, sample)
    plots.plot_estimate(estimate)
    save("estimate")
    plots.plot_worth(estimate, sort=True)
    save("worth")
    plots.plot_candidates(estimate)
    save("candidates")
    plots.plot_rest(f, sample, sx.Polynomial(2), name="theta[Choate]")
    save("rest")
    plots.plot_convergence(f, sample, sx.Polynomial(2), name="mu")
    save("convergence")
    _, axes = plt.subplots(1, 2, figsize=(14, 5.6), layout="constrained")
    plots.plot_audit(sample, ax=axes[0])
    plots.plot_audit(without_jacobian(sample), ax=axes[1])
    save("audit")
    control = sx.fit({"tau": f["tau"]}, sample, sx.Network(16, 2), solver=sx.Stochastic(epochs=40))
    plots.plot_training(control)
    save("training")
    plots.plot_forest(estimate, backend="matplotlib")
    save("forest")


if __name__ == "__main__":
    main()
