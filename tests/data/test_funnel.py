"""Coordinates in which a funnel is a cylinder."""

import jax
import jax.numpy as jnp
import numpy as np

from steinax.data import FunnelMap, find_funnel


def _funnel(n: int, seed: int, rest: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """A log scale t, widths exp(t), centres that share a mean, rotated: draws and scores."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(n, 1))
    t, z = rng.normal(size=(n, 1)), rng.normal(size=(n, rest))
    draws = np.hstack([mean + z * np.exp(t), mean, t])

    def density(point):
        y, mean, t = point[:rest], point[rest], point[rest + 1]
        own = -0.5 * (t**2 + mean**2)
        return own - 0.5 * jnp.sum((y - mean) ** 2) * jnp.exp(-2 * t) - rest * t

    with jax.enable_x64(True):
        return draws, np.asarray(jax.vmap(jax.grad(density))(draws))


def test_finds_the_scale_and_not_the_others() -> None:
    for n in (100, 1000):
        found = find_funnel(*_funnel(n, seed=n))
        assert found is not None
        assert found.driver == 5
        assert np.sort(found.share)[0] < 0.2  # the common mean is as wide in the neck as elsewhere
        assert np.all(np.sort(found.share)[1:] > 0.8)


def test_the_scores_stay_scores() -> None:
    """E[z s'] = -1 in the new coordinates, to Monte Carlo error, where tails are light again."""
    draws, scores = _funnel(20_000, seed=1)
    found = find_funnel(draws[:1000], scores[:1000])
    assert found is not None
    with jax.enable_x64(True):
        z, s = map(np.asarray, found(draws, scores))
    products = z[:, :, None] * s[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(z))
    apart = (products.mean(axis=0) + np.eye(z.shape[1])) / error
    assert np.abs(apart).max() < 4.5  # 36 of them: false alarm 2e-4
    kurtosis = np.mean(np.sum(s**2, axis=1) ** 2) / np.mean(np.sum(s**2, axis=1)) ** 2
    assert kurtosis < 3


def test_the_map_is_the_change_of_variables() -> None:
    """The new score is the gradient of the density of the image, by automatic differentiation."""
    rng = np.random.default_rng(3)
    mix = rng.normal(size=(2, 2)) + 2 * np.eye(2)
    change = FunnelMap(
        1, np.zeros(3), np.ones(3), mix, np.array([0.3, 0.9]), np.array(1.7), np.array([0.2, -0.4])
    )

    def back(z):
        t, y = z[0], z[1:] / jnp.sqrt(1 - change.share + change.share * jnp.exp(-1.7 * z[0]))
        u = mix @ (y + change.middle)
        return jnp.array([u[0], t, u[1]])

    def density(x):
        return -jnp.sum(x**4) / 4 + jnp.prod(x) / 3

    def pushed(z):
        return density(back(z)) + jnp.linalg.slogdet(jax.jacobian(back)(z))[1]

    with jax.enable_x64(True):
        x = jnp.asarray(rng.normal(size=(5, 3)))
        z, score = change(x, jax.vmap(jax.grad(density))(x))
        np.testing.assert_allclose(jax.vmap(back)(z), x, atol=1e-12)
        np.testing.assert_allclose(score, jax.vmap(jax.grad(pushed))(z), rtol=1e-10, atol=1e-10)


def test_finds_none_where_there_is_none() -> None:
    rng = np.random.default_rng(0)
    for dim in (1, 2, 5, 20):
        for n in (50, 400):
            x = rng.normal(size=(n, dim))
            assert find_funnel(x, -x) is None
    student = rng.standard_t(5, size=(400, 3))
    assert find_funnel(student, -6 * student / (5 + student**2)) is None
