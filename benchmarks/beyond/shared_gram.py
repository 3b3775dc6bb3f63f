"""Stein kernels at several temperatures on one set of draws: each by itself, or from three shared matrices.

The score is linear in the temperature, so the Stein kernel is A + t B + t^2 C. CPU seconds, the least of some
rounds, beside those of the fit that needs the matrices.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx

N, LENGTH_SCALE, ROUNDS = 900, 2.0, 5
KERNEL = sx.kernels.SquaredExponential(LENGTH_SCALE)
TEMPERATURES = {"3 temperatures": (0.4, 0.5, 0.6), "9 temperatures": tuple(np.linspace(0, 1, 9))}


def measure(only: str | None = None, rounds: int | None = None) -> list[dict]:
    """A row for each dimension and number of temperatures.

    Args:
        only: a part of "6 dimensions, 3 temperatures".
        rounds: how often each time is taken.
    """
    rounds = ROUNDS if rounds is None else rounds
    rows = []
    for dim in (6, 100):
        for word, temperatures in TEMPERATURES.items():
            name = f"{dim} dimensions, {word}"
            if only is None or only in name:
                rows.append({"problem": name, **_row(dim, temperatures, rounds)})
    return rows


def _row(dim: int, temperatures: tuple[float, ...], rounds: int) -> dict:
    x = np.random.default_rng(0).normal(size=(N, dim))
    prior, likelihood = -x, -2 * x + np.sin(x)
    with jax.enable_x64(True):
        alone = [each(x, prior, likelihood, t) for t in temperatures]
        together = shared(x, prior, likelihood, temperatures)
        np.testing.assert_allclose(together[-1], alone[-1], rtol=1e-8, atol=1e-8)
        apart = _seconds(lambda: [each(x, prior, likelihood, t) for t in temperatures], rounds)
        shared_time = _seconds(lambda: shared(x, prior, likelihood, temperatures), rounds)
    sample = sx.Sample(x.reshape(3, -1, dim), (prior + likelihood).reshape(3, -1, dim))
    family, settings = sx.KernelTranslates(KERNEL), {"solver": sx.Exact(dual=True), "audit": "off"}
    fit = _seconds(lambda: sx.estimate("x", sample, family, **settings).value, rounds)
    count = len(temperatures)
    return {
        "kernels apart, s": apart,
        "shared, s": shared_time,
        "ratio": apart / shared_time,
        "fits, s": count * fit,
        "saved of all": (apart - shared_time) / (count * fit),
    }


@jax.jit
def each(x, prior, likelihood, t):
    """The Stein kernel at one temperature, as the library has it."""
    score = prior + t * likelihood
    return sx.KernelTranslates(KERNEL).feature_matrix((x, score), x, score)


@jax.jit(static_argnums=3)
def shared(x, prior, likelihood, temperatures):
    """The Stein kernels at all temperatures from A, B and C."""
    products = x @ x.T
    square = jnp.diag(products)
    far = square[:, None] + square - 2 * products
    phi = jnp.exp(-far / (2 * LENGTH_SCALE**2))
    first, second = -phi / (2 * LENGTH_SCALE**2), phi / (4 * LENGTH_SCALE**4)

    def across(score):
        both = x @ score.T
        own = jnp.diag(both)
        return both + both.T - own[:, None] - own

    mixed = prior @ likelihood.T
    a = -4 * second * far - 2 * x.shape[1] * first + 2 * first * across(prior)
    a = a + phi * (prior @ prior.T)
    b = 2 * first * across(likelihood) + phi * (mixed + mixed.T)
    c = phi * (likelihood @ likelihood.T)
    return [a + t * b + t**2 * c for t in temperatures]


def _seconds(run, rounds: int) -> float:
    jax.block_until_ready(run())
    found = []
    for _ in range(rounds):
        start = time.process_time()
        jax.block_until_ready(run())
        found.append(time.process_time() - start)
    return min(found)
