"""What looking costs a run that stops by itself: a regression whose gradient takes about a millisecond."""

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

ROWS, DIM, CHAINS, WARMUP, BATCH, DRAWS = 8000, 20, 4, 500, 10, 1000
AT_MOST = 0.1


def measure(rounds: int = 1) -> list[dict]:
    """Seconds of looks over those of sampling, warm-up included: to a number of draws, and to a tolerance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, DIM))
    y = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-x @ rng.normal(size=DIM)))) * 1.0
    with jax.enable_x64(True):
        x, y = jnp.asarray(x), jnp.asarray(y)
        gradient = jax.jit(jax.value_and_grad(lambda beta: _log_density(beta, x, y)))
        each = _seconds(lambda: jax.block_until_ready(gradient(jnp.zeros(DIM))))
    rows = []
    for name, tolerance in (("to 1,000 draws", 1e-12), ("to 0.01 posterior sds", 0.01)):
        shares, draws = [], []
        for _ in range(rounds):
            began = time.monotonic()
            stopped = sx.until(_batches(x, y), "beta", tolerance, draws=DRAWS)
            total = time.monotonic() - began
            shares.append(stopped.seconds / (total - stopped.seconds))
            draws.append(stopped.sample.size)
        rows.append(
            {
                "run": name,
                "looking / sampling": min(shares),
                "at most": AT_MOST,
                "looks": len(stopped.looks),
                "draws": max(draws),
                "plain draws": float(stopped.plain_draws.max()),
                "ms of a gradient": 1000 * each,
            }
        )
    return rows


def _log_density(beta: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    logits = x @ beta
    return jnp.sum(y * logits - jnp.logaddexp(0.0, logits)) - jnp.sum(beta**2) / 2


def _seconds(call) -> float:
    call()
    took = []
    for _ in range(20):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return float(np.median(took))


def _batches(x: jax.Array, y: jax.Array) -> Iterator[sx.Sample]:
    """NumPyro's NUTS, resumed every ten draws of a chain; chains one after the other."""
    from numpyro.infer import MCMC, NUTS

    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(potential_fn=lambda z: -_log_density(z["beta"], x, y)),
            num_warmup=WARMUP,
            num_samples=BATCH,
            num_chains=CHAINS,
            chain_method="sequential",
            progress_bar=False,
        )
        mcmc.run(
            jax.random.key(0),
            init_params={"beta": jnp.zeros((CHAINS, DIM))},
            extra_fields=("z_grad",),
        )
    while True:
        with jax.enable_x64(True):
            draws = mcmc.get_samples(group_by_chain=True)["beta"]
            gradients = mcmc.get_extra_fields(group_by_chain=True)["z_grad"]["beta"]
            names = [f"beta[{i}]" for i in range(DIM)]
            yield sx.Sample(np.asarray(draws), -np.asarray(gradients), names)
            mcmc.post_warmup_state = mcmc.last_state
            mcmc.run(mcmc.last_state.rng_key, extra_fields=("z_grad",))
