"""The extra `blackjax`: Hamiltonian Monte Carlo in BlackJAX, and its states."""


def main() -> None:
    import blackjax
    import expect
    import jax

    import steinax as sx

    expect.installed()
    jax.config.update("jax_enable_x64", True)

    def density(x: jax.Array) -> jax.Array:
        return -(((x - expect.MEAN) / expect.SD) ** 2).sum() / 2

    kernel = blackjax.hmc(density, 0.5, jax.numpy.ones(2), num_integration_steps=5)

    def chain(key: jax.Array) -> object:
        def step(state: object, key: jax.Array) -> tuple[object, object]:
            return (kernel.step(key, state)[0],) * 2

        return jax.lax.scan(step, kernel.init(jax.numpy.zeros(2)), jax.random.split(key, 200))[1]

    states = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 4))
    expect.exact_mean("x", sx.from_blackjax(states, axes=("chain", "draw")))


if __name__ == "__main__":
    main()
