"""With no family given, one of the space's is chosen for each integrand, or none."""

import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.beyond._discrete import ising

import steinax as sx


def directions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform on the sphere in three dimensions, where every polynomial has a known mean."""
    x = rng.normal(size=(*shape, 3))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def uniform(chains: int, length: int, seed: int = 0, **options) -> sx.Sample:
    x = directions(np.random.default_rng(seed), (chains, length))
    return sx.Sample(x, 0 * x, space=sx.spaces.Sphere(), **options)


EXPONENTIAL = np.sinh(2.0) / 2.0  # the mean of exp(2 x_0)


def exponential(x):
    return jnp.exp(2 * x[0])


def test_noise_is_left_alone() -> None:
    """Nothing of it can be fitted, and a fit would only add to its variance."""
    sample = uniform(4, 100)
    noise = np.random.default_rng(1).normal(size=(4, 100, 5))
    est = sx.estimate({"noise": noise}, sample)
    assert np.array_equal(est.value, est.plain_value)
    assert set(est.chosen) == {"plain Monte Carlo"}


def test_each_integrand_has_its_own() -> None:
    """A component is a polynomial of the first degree; its exponential is none of any degree."""
    est = sx.estimate({"component": "x[0]", "exponential": exponential}, uniform(4, 100))
    truth = np.array([0.0, EXPONENTIAL])
    assert np.all(np.abs(est.value - truth) < 5 * est.mcse + 1e-12)
    assert est.worth.min() > 1e4
    assert "KernelTranslates" in est.chosen[1]
    assert est.candidates is not None
    assert "plain Monte Carlo" in est.candidates.names


def test_weights_of_one_are_no_weights() -> None:
    f = {"f": exponential}
    bare = sx.estimate(f, uniform(4, 50))
    weighted = sx.estimate(f, uniform(4, 50, log_weights=np.zeros((4, 50))))
    assert np.allclose(weighted.value, bare.value, rtol=1e-6)
    assert np.allclose(weighted.mcse, bare.mcse, rtol=1e-3)


def test_weights_are_heeded() -> None:
    """Uniform draws, weighted by the density exp(kappa x_0) of von Mises and Fisher."""
    kappa = 1.5
    x = directions(np.random.default_rng(2), (4, 200))
    score = np.zeros_like(x)
    score[..., 0] = kappa
    sample = sx.Sample(x, score, space=sx.spaces.Sphere(), log_weights=kappa * x[..., 0])
    est = sx.estimate("x[0]", sample)
    assert abs(est.value[0] - (1 / np.tanh(kappa) - 1 / kappa)) < 5 * est.mcse[0]
    assert est.worth[0] > 1000


def test_single_precision_is_chosen_in_double() -> None:
    double, single = (uniform(4, 50, dtype=dtype) for dtype in (np.float64, np.float32))
    found, rounded = (sx.estimate({"f": exponential}, one) for one in (double, single))
    assert abs(found.value[0] - rounded.value[0]) < found.mcse[0] + 1e-6


@pytest.mark.slow
def test_many_draws_use_landmarks() -> None:
    est = sx.estimate({"f": exponential}, uniform(4, 400))
    assert abs(est.value[0] - EXPONENTIAL) < 5 * est.mcse[0] + 1e-12
    assert est.worth[0] > 1e4


@pytest.mark.slow
def test_a_kernel_gains_where_products_do_not() -> None:
    """Spins of strong coupling: docs/beyond/discrete.md has 25 for this one, and 0.9 without a kernel."""
    problem = ising(0.6)
    f = {"two neighbours": problem.integrands["two neighbours"]}
    found = [sx.estimate(f, one) for one in problem.samples(0, 6, 250)]
    truth = problem.exact["two neighbours"]
    plain = np.mean([(est.plain_value - truth) ** 2 for est in found])
    assert plain > 3 * np.mean([(est.value - truth) ** 2 for est in found])
    # six intervals of 1.96 standard errors: three misses or more have a chance of 2 in 1,000
    assert sum(abs(est.value[0] - truth) > 1.96 * est.mcse[0] for est in found) <= 2
