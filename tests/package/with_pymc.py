"""The extra `pymc`: any trace of a model, its scores computed by the model."""


def main() -> None:
    import expect
    import pymc as pm

    import steinax as sx

    expect.installed()
    with pm.Model() as model:
        pm.Normal("mu", expect.MEAN, expect.SD)
        settings = {"chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
        trace = pm.sample(200, tune=200, compute_convergence_checks=False, **settings)
    expect.exact_mean("mu", sx.from_pymc(model, trace))


if __name__ == "__main__":
    main()
