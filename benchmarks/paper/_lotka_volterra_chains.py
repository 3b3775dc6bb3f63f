"""Draws of the Lotka-Volterra posterior by BlackJAX, its expectations by quadrature, and checks."""

import time
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import mala
from numpy.polynomial.hermite_e import hermegauss

import steinax as sx

from ._lotka_volterra_model import (
    Data,
    Laplace,
    data,
    laplace,
    log_density,
    stored,
    trajectory,
    value_and_score,
)

CHAINS, BURN_IN = 8, 100
STEP_SIZES, TRIAL, ACCEPTANCE = np.linspace(0.5, 1.0, 6), 200, 0.6
NODES = (8, 10)  # of the quadrature in each dimension, the first to check the second
BATCH = 100  # draws, to tell standard errors by


def sampled(length: int) -> dict[str, np.ndarray]:
    """Draws and scores of Langevin chains, the truth, and all that is checked."""
    with jax.enable_x64(True):
        given = data()
        around = laplace(given)
        trial = _mala(given, around, STEP_SIZES, TRIAL, seed=1)["accepted"].mean(axis=1)
        step = STEP_SIZES[np.abs(trial - ACCEPTANCE).argmin()]
        start = time.process_time()
        found = _mala(given, around, np.full(CHAINS, step), length, seed=2)
        seconds = time.process_time() - start
        expectation, check = _quadrature(given, around)
        differences = _differences(given)
    acceptance = found.pop("accepted").mean()
    about = {"step": step, "acceptance": acceptance, "seconds": seconds, **differences}
    about |= _compared(found["x"], expectation) | {"quadrature": np.abs(expectation - check).max()}
    return found | {"truth": expectation} | {k: np.asarray(v) for k, v in about.items()}


def _mala(
    given: Data, around: Laplace, steps: np.ndarray, length: int, seed: int
) -> dict[str, np.ndarray]:
    """A chain for each step size, in coordinates that the Laplace approximation makes round.

    One chain runs after the other: on one core this is faster than all side by side.
    """
    both = value_and_score(given, trajectory(given))
    mode, root = jnp.asarray(around.mode), jnp.asarray(around.root)

    @jax.custom_vjp
    def density(z: jax.Array) -> jax.Array:
        return both(mode + root @ z)[0]

    def forward(z: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, score = both(mode + root @ z)
        return value, root.T @ score

    density.defvjp(forward, lambda gradient, change: (change * gradient,))

    def chain(key_and_step: tuple[jax.Array, Any]) -> tuple[jax.Array, ...]:
        key, step = key_and_step
        kernel = mala.build_kernel()
        first, then = jax.random.split(key)

        def advance(state: mala.MALAState, one: jax.Array) -> tuple[mala.MALAState, tuple]:
            state, info = kernel(one, state, density, step)
            return state, (state.position, state.logdensity_grad, info.is_accepted)

        state = mala.init(jax.random.normal(first, mode.shape), density)
        return jax.lax.scan(advance, state, jax.random.split(then, BURN_IN + length))[1]

    keys = jax.random.split(jax.random.key(seed), len(steps))
    made = jax.jit(lambda keys, steps: jax.lax.map(chain, (keys, steps)))(keys, jnp.asarray(steps))
    z, score, accepted = (np.asarray(one)[:, BURN_IN:] for one in made)
    score = score @ np.linalg.inv(around.root)
    return {"x": around.mode + z @ around.root.T, "score": score, "accepted": accepted}


def _quadrature(given: Data, around: Laplace) -> tuple[np.ndarray, np.ndarray]:
    """The posterior means of the parameters, by Gauss-Hermite rules of two sizes."""
    rules = []
    for nodes in NODES:
        place, weight = hermegauss(nodes)
        dims = len(around.mode)
        weights = np.array([np.prod(one) for one in product(weight / weight.sum(), repeat=dims)])
        heavy = weights > 1e-24
        rules.append((np.array(list(product(place, repeat=dims)))[heavy], weights[heavy]))
    x = [around.mode + z @ around.root.T for z, _ in rules]
    value = log_density(given, trajectory(given))
    logs = np.asarray(jax.jit(lambda x: jax.lax.map(value, x))(jnp.asarray(np.concatenate(x))))
    logs = np.split(logs - logs.max(), [len(x[0])])
    found = []
    for (z, weight), points, log in zip(rules, x, logs, strict=True):
        mass = weight * np.exp(log + 0.5 * (z**2).sum(axis=1))
        found.append((mass / mass.sum()) @ np.exp(points))
    return found[1], found[0]


def _differences(given: Data) -> dict[str, float]:
    """The largest between our densities and scores and those stored, and those of a tight solver."""
    chains = stored("lv_generated_pmala")
    x, score, log = (chains[k][:, ::4000].reshape(50, -1) for k in ("x", "score", "logp"))
    found = {}
    for name, tolerance in (("equal", None), ("tight", 1e-12)):
        both = value_and_score(given, trajectory(given, tolerance))
        found[name] = [
            np.asarray(one)
            for one in jax.jit(lambda x, both=both: jax.lax.map(both, x))(jnp.asarray(x))
        ]
    (value, gradient), (tight, steep) = found["equal"], found["tight"]
    apart = value - log[:, 0]
    return {
        "log_density_stored": float(np.ptp(apart)),
        "constant_stored": float(apart.mean()),
        "score_stored": float(np.abs(gradient - score).max()),
        "log_density_tight": float(np.abs(value - tight).max()),
        "score_tight": float(np.abs(gradient - steep).max()),
        "score_size": float(np.abs(score).max()),
    }


def _compared(x: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Our chains against those stored, in standard errors; and other values for the truth."""
    chains = stored("lv_generated_pmala")
    ours, theirs = _moments(x), _moments(chains["x"])
    apart = (ours[0] - theirs[0]) / np.hypot(ours[1], theirs[1])
    natural, error = _moments(np.exp(chains["x"]))
    thin = chains["x"][:, ::20], chains["score"][:, ::20]
    wanted = {str(i): np.exp(thin[0][..., i]) for i in range(len(truth))}
    found = sx.estimate(wanted, sx.Sample(*thin), sx.Polynomial(4), audit="off")
    k = len(truth)
    own, own_error = _moments(np.exp(x))
    return {
        "apart": apart,
        "truth_sampled": (own[:k] - truth) / own_error[:k],
        "truth_stored": (natural[:k] - truth) / error[:k],
        "truth_stored_error": error[:k],
        "truth_estimated": np.asarray(found.value) - truth,
        "truth_estimated_error": np.asarray(found.mcse),
        "spread": natural[k:],
    }


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means, then standard deviations, of all draws, and standard errors of both by batch means."""
    mean, spread = x.mean(axis=(0, 1)), x.std(axis=(0, 1))
    each = np.concatenate([x, 0.5 * (x - mean) ** 2 / spread], axis=-1)
    batches = each.reshape(-1, BATCH, each.shape[-1]).mean(axis=1)
    return np.append(mean, spread), batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
