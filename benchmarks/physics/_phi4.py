r"""The scalar field with a quartic interaction, in two dimensions, sampled by BlackJAX's HMC.

$S = \sum_x [\frac12 \sum_\mu (\phi_{x + \mu} - \phi_x)^2 + \frac12 m^2 \phi_x^2 + \lambda \phi_x^4]$
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

import steinax as sx


class Theory(NamedTuple):
    """The couplings of a theory."""

    mass_squared: float
    coupling: float


THEORIES = {
    "weak": Theory(1.0, 0.02),
    "strong": Theory(0.5, 1.0),
    "negative mass": Theory(-4.0, 1.74375),
}


def log_density(phi: jax.Array, theory: Theory) -> jax.Array:
    """Minus the action of one configuration."""
    hops = sum(jnp.sum((jnp.roll(phi, -1, axis) - phi) ** 2) for axis in range(phi.ndim))
    return -(hops / 2 + jnp.sum(theory.mass_squared * phi**2 / 2 + theory.coupling * phi**4))


def sample(
    theory: Theory,
    shape: tuple[int, ...],
    chains: int,
    draws: int,
    seed: int,
    every: int = 4,
    warmup: int = 200,
    step: float = 0.12,
    leaps: int = 10,
) -> sx.Sample:
    """Sample configurations by chains side by side, from one start for all, and keep every few of them."""
    import blackjax

    kernel, sites = blackjax.hmc.build_kernel(), jnp.ones(shape).size

    def density(position: dict) -> jax.Array:
        return log_density(position["phi"], theory)

    def move(states, key):
        inner, width = jax.random.split(key)
        size = step * jax.random.uniform(width, minval=0.8, maxval=1.2)
        keys = jax.random.split(inner, chains)

        def one(key, state):
            return kernel(key, state, density, size, jnp.ones(sites), leaps)[0]

        return jax.vmap(one)(keys, states), None

    def several(states, key):
        states, _ = jax.lax.scan(move, states, jax.random.split(key, every))
        return states, states

    @jax.jit
    def run(key):
        start, before, after = jax.random.split(key, 3)
        phi = 0.3 * jax.random.normal(start, (chains, *shape))
        states = jax.vmap(lambda one: blackjax.hmc.init({"phi": one}, density))(phi)
        states, _ = jax.lax.scan(move, states, jax.random.split(before, warmup))
        return jax.lax.scan(several, states, jax.random.split(after, draws))[1]

    return sx.from_blackjax(run(jax.random.key(seed)), axes=("draw", "chain"))
