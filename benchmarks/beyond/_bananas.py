r"""Markov chains on a banana, $x_1 = z_1$ and $x_2 = z_2 + z_1^2 / 2$ with normal z, from exact starts."""

import numpy as np

Shape = tuple[int, int]  # chains of all replicates, and draws of each


def banana(z: np.ndarray) -> np.ndarray:
    """Draws from normal ones."""
    return np.stack([z[..., 0], z[..., 1] + z[..., 0] ** 2 / 2], axis=-1)


def score(x: np.ndarray) -> np.ndarray:
    """The gradient of the log density."""
    a, b = x[..., 0], x[..., 1] - x[..., 0] ** 2 / 2
    return np.stack([a * b - a, -b], axis=-1)


def autoregressive(*coefficients: float):
    """Chains that are AR(1) in each of the normal coordinates, with a coefficient of its own."""
    rho = np.array(coefficients)

    def draw(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        z = rng.normal(size=(*shape, 2))
        for t in range(1, shape[1]):
            z[:, t] = rho * z[:, t - 1] + np.sqrt(1 - rho**2) * z[:, t]
        return banana(z)

    return draw


def hamiltonian(step: float, steps: int):
    """HMC; one step of it is MALA, and half a period makes draws antithetic."""

    def draw(rng: np.random.Generator, shape: Shape) -> np.ndarray:
        x = banana(rng.normal(size=(shape[0], 2)))
        out = np.empty((*shape, 2))
        for t in range(shape[1]):
            p = rng.normal(size=x.shape)
            y, q = x, p + step / 2 * score(x)
            for i in range(steps):
                y = y + step * q
                q = q + (step if i < steps - 1 else step / 2) * score(y)
            gain = _energy(x, p) - _energy(y, q)
            x = np.where((np.log(rng.uniform(size=shape[0])) < gain)[:, None], y, x)
            out[:, t] = x
        return out

    return draw


def nuts(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """The No-U-Turn sampler of BlackJAX."""
    import blackjax
    import jax
    import jax.numpy as jnp

    def density(x):
        return -(x[0] ** 2) / 2 - (x[1] - x[0] ** 2 / 2) ** 2 / 2

    kernel = blackjax.nuts(density, 0.6, jnp.ones(2), max_num_doublings=5)

    def chain(key, start):
        def step(state, one):
            state, _ = kernel.step(one, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(start), jax.random.split(key, shape[1]))[1]

    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), shape[0])
    starts = jnp.asarray(banana(rng.normal(size=(shape[0], 2))))
    return np.asarray(jax.jit(jax.vmap(chain))(keys, starts), np.float64)


def _energy(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    curve = x[..., 1] - x[..., 0] ** 2 / 2
    return (x[..., 0] ** 2 + curve**2 + np.sum(p**2, axis=-1)) / 2
