"""The extra `numpyro`: NUTS in NumPyro, with the gradients it kept."""


def main() -> None:
    import expect
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS

    import steinax as sx

    expect.installed()
    numpyro.enable_x64()

    def model() -> None:
        numpyro.sample("mu", numpyro.distributions.Normal(expect.MEAN, expect.SD))

    mcmc = MCMC(
        NUTS(model),
        num_warmup=100,
        num_samples=200,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), extra_fields=("z_grad",))
    expect.exact_mean("mu", sx.from_numpyro(mcmc))


if __name__ == "__main__":
    main()
