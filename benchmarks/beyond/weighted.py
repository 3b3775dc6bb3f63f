r"""Importance samples and SMC particles of a banana: errors and coverage with and without control variates.

The target is $a \sim N(0, 1)$, $b \sim N(a^2 / 2, 1)$. Importance samples are drawn from Student's
distribution with 5 degrees of freedom, centred at the target's mean, its scale a factor wider than the
target's. The particles are those of adaptive tempered SMC from a wide normal, with the weights of its
last step.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

DRAWS, FREEDOM, WIDE = 500, 5.0, 3.0
MEAN, SCALE = np.array([0.0, 0.5]), np.array([1.0, np.sqrt(1.5)])
FACTORS = (1.0, 2.0, 4.0)
F = {
    "a": lambda x: x[0],
    "b": lambda x: x[1],
    "b^2": lambda x: x[1] ** 2,
    "|a|": lambda x: jnp.abs(x[0]),
}
TRUTH = np.array([0.0, 0.5, 1.75, np.sqrt(2 / np.pi)])
FAMILIES = {
    "Polynomial(2)": (sx.Polynomial(2), 100),
    "Polynomial(2) + KernelTranslates()": (sx.Polynomial(2) + sx.KernelTranslates(), 100),
    "chosen": (None, 20),
}
MCMC_STEPS, STEP, LEAPS = 3, 0.4, 5


def log_density(x: jax.Array) -> jax.Array:
    """Of the banana at one point, up to a constant."""
    return -(x[0] ** 2 + (x[1] - x[0] ** 2 / 2) ** 2) / 2


scores = jax.jit(jax.vmap(jax.grad(log_density)))
log_densities = jax.jit(jax.vmap(log_density))


def importance_sample(seed: int, factor: float) -> sx.Sample:
    """Draws of Student's distribution, weighted to the banana."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((DRAWS, 2)) / np.sqrt(rng.chisquare(FREEDOM, (DRAWS, 1)) / FREEDOM)
    x = MEAN + factor * SCALE * z
    proposal = -(FREEDOM + 2) / 2 * np.log1p((z**2).sum(axis=1) / FREEDOM)
    logs = np.asarray(log_densities(x), np.float64) - proposal
    return sx.Sample(x, scores(x), log_weights=logs)


@cache
def _tempered():
    import blackjax
    from blackjax.smc.resampling import systematic

    algorithm = blackjax.adaptive_tempered_smc(
        logprior_fn=lambda x: -(x**2).sum() / 2 / WIDE**2,
        loglikelihood_fn=lambda x: log_density(x) + (x**2).sum() / 2 / WIDE**2,
        mcmc_step_fn=blackjax.hmc.build_kernel(),
        mcmc_init_fn=blackjax.hmc.init,
        mcmc_parameters={
            "step_size": jnp.full(1, STEP),
            "inverse_mass_matrix": jnp.ones((1, 2)),
            "num_integration_steps": jnp.full(1, LEAPS),
        },
        resampling_fn=systematic,
        target_ess=0.5,
        num_mcmc_steps=MCMC_STEPS,
    )
    return algorithm, jax.jit(algorithm.step)


def particles(seed: int) -> sx.Sample:
    """The weighted particles of a run of tempered SMC."""
    algorithm, step = _tempered()
    first, key = jax.random.split(jax.random.key(seed))
    state = algorithm.init(WIDE * jax.random.normal(first, (DRAWS, 2)))
    while float(_temperature(state)) < 1:
        key, one = jax.random.split(key)
        state, _ = step(one, state)
    x = np.asarray(state.particles, np.float64)
    return sx.Sample(x, scores(x), log_weights=np.log(np.asarray(state.weights, np.float64)))


def _temperature(state) -> jax.Array:
    """blackjax has called it by several names."""
    name = "tempering_param" if hasattr(state, "tempering_param") else "lmbda"
    return getattr(state, name)


SOURCES = {f"Student, {factor:g} x wider": factor for factor in FACTORS} | {"SMC particles": None}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """Errors over independent samples, for every source and family.

    Args:
        only: a part of what is to be measured, such as `SMC particles, chosen`.
        rounds: samples of each; by default 100, or 20 where the family is chosen.
    """
    return [
        _row(source, name, family, rounds or usual)
        for source in SOURCES
        for name, (family, usual) in FAMILIES.items()
        if only is None or only in f"{source}, {name}"
    ]


def _row(source: str, name: str, family: sx.families.AbstractFamily | None, rounds: int) -> dict:
    factor = SOURCES[source]
    worth, plain, ours = [], [], []
    for seed in range(rounds):
        sample = particles(seed) if factor is None else importance_sample(seed, factor)
        est = sx.estimate(F, sample, family, audit="off")
        worth.append(sample.size / np.mean(np.square(sample.weights)))
        plain.append(_errors(est.plain_value, est.plain_interval(0.95)))
        ours.append(_errors(est.value, est.interval(0.95)))
    before, after = (
        np.sqrt(np.mean([one[0] ** 2 for one in part], axis=0)) for part in (plain, ours)
    )
    return {
        "draws from": source,
        "weights worth": round(float(np.mean(worth))),
        "family": name,
        "samples": rounds,
        **{f"gain of {f}": f"{a / b:.1f}" for f, a, b in zip(F, before, after, strict=True)},
        "plain 95% covers": f"{np.mean([one[1] for one in plain]):.3f}",
        "95% covers": f"{np.mean([one[1] for one in ours]):.3f}",
    }


def _errors(value: np.ndarray, interval: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The errors of an estimate, and whether its intervals cover."""
    low, high = np.moveaxis(interval, -1, 0)
    return value - TRUTH, (low <= TRUTH) & (high >= TRUTH)
