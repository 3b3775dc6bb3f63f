"""Real samplers that go on: CmdStan writing its files, NumPyro and BlackJAX resumed."""

import json
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

X = np.random.default_rng(0).normal(size=(40, 2))
Y = (np.random.default_rng(1).uniform(size=40) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))) * 1.0


def cmdstan(folder: Path, draws: int, chains: int = 2) -> list[subprocess.Popen]:
    """Start CmdStan on a model that is shipped compiled: that of Prophet, a linear trend with a season."""
    package = find_spec("prophet")
    assert package is not None and package.origin is not None
    program = Path(package.origin).parent / "stan_model" / "prophet_model.bin"
    t = np.linspace(0, 1, 100)
    season = np.stack([np.sin(40 * t), np.cos(40 * t)], axis=1)
    noise = 0.1 * np.random.default_rng(2).normal(size=100)
    data = {
        **{"T": 100, "K": 2, "S": 1, "tau": 0.05, "trend_indicator": 0},
        **{
            "t": t.tolist(),
            "cap": [1.0] * 100,
            "y": (t / 2 + season @ [0.1, 0.2] + noise).tolist(),
        },
        **{"t_change": [0.5], "X": season.tolist(), "sigmas": [1.0, 1.0]},
        **{"s_a": [1.0, 1.0], "s_m": [0.0, 0.0]},
    }
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    out = folder / "output"
    out.mkdir()

    def start(chain: int) -> subprocess.Popen:
        settings = (
            f"id={chain} random seed=1 sample num_warmup=300 num_samples={draws} save_warmup=1 data"
        )
        files = [f"file={folder / 'data.json'}", "output", f"file={out / f'run_{chain}.csv'}"]
        files += [
            f"diagnostic_file={out / f'run-diagnostic_{chain}.csv'}",
            "sig_figs=16",
            "refresh=0",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([program, *settings.split(), *files], cwd=folder, **quiet)

    return [start(chain + 1) for chain in range(chains)]


def numpyro() -> Iterator[sx.Sample]:
    """A logistic regression, 4 x 50 draws at a time."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model() -> None:
        beta = numpyro.sample("beta", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ beta), obs=Y)

    with jax.enable_x64(True):
        settings = {"num_chains": 4, "chain_method": "vectorized", "progress_bar": False}
        mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=50, **settings)
        mcmc.run(jax.random.key(0), extra_fields=("z_grad",))
    while True:
        yield sx.from_numpyro(mcmc)
        with jax.enable_x64(True):
            mcmc.post_warmup_state = mcmc.last_state
            mcmc.run(mcmc.last_state.rng_key, extra_fields=("z_grad",))


def blackjax() -> Iterator[sx.Sample]:
    """The same regression, four chains, 50 draws at a time."""
    import blackjax

    def log_density(beta: jax.Array) -> jax.Array:
        logits = X @ beta
        return jnp.sum(Y * logits - jnp.logaddexp(0.0, logits)) - jnp.sum(beta**2) / 2

    with jax.enable_x64(True):
        nuts = blackjax.nuts(log_density, 0.5, jnp.full(2, 0.2))
        states = jax.vmap(nuts.init)(0.1 * jnp.ones((4, 2)))

        def batch(states, key):
            def step(state, key):
                state, info = jax.vmap(nuts.step)(jax.random.split(key, 4), state)
                return state, (state, info)

            return jax.lax.scan(step, states, jax.random.split(key, 50))

        batch = jax.jit(batch)
        states, _ = batch(states, jax.random.key(1))
    for i in range(1000):
        with jax.enable_x64(True):
            states, (history, infos) = batch(states, jax.random.key(2 + i))
        yield sx.from_blackjax(history, infos, axes=("draw", "chain"))


def truth() -> np.ndarray:
    """The posterior means of the regression, on a grid."""
    axis = np.linspace(-3, 5, 401)
    grid = np.stack(np.meshgrid(axis, axis - 2, indexing="ij"), axis=-1)
    logits = grid @ X.T
    log = (Y * logits - np.logaddexp(0, logits)).sum(axis=-1) - (grid**2).sum(axis=-1) / 2
    weights = np.exp(log - log.max())
    return (weights[..., None] * grid).sum(axis=(0, 1)) / weights.sum()
