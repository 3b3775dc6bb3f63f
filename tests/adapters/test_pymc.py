"""Scores recomputed by PyMC: every transform, any trace, and what is refused."""

import time
from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import xarray

import steinax as sx
from adapters import model_pymc
from adapters.differences import differences
from adapters.model_pymc import Mode, pm, pt
from adapters.settled import same_draws, training_of
from steinax import checks
from steinax.adapters._pymc import from_pymc

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]


def positive() -> None:
    pm.Exponential("rate", 2.0, shape=(2, 3))
    pm.HalfCauchy("scale", 1.5)


def interval() -> None:
    top = pm.HalfNormal("top", 2.0)
    pm.Uniform("u", 0.0, top, shape=3)
    pm.TruncatedNormal("t", 0.0, top, lower=-top, upper=2 * top)
    pm.Beta("p", 2.0, 3.0)
    pm.TruncatedNormal("half", 0.0, 1.0, lower=top)


def simplex() -> None:
    shape = pm.Gamma("shape", 3.0, 1.0)
    pm.Dirichlet("w", pt.stack([shape, 2.0, 1.5]), shape=(2, 3))


def ordered() -> None:
    pm.Normal(
        "cut", [-1.0, 0.0, 1.0, 2.0], 1.0, transform=pm.distributions.transforms.ordered, shape=4
    )


def correlation() -> None:
    pm.LKJCorr("C", n=3, eta=2.0)


def covariance() -> None:
    pm.LKJCholeskyCov("chol", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0), compute_corr=True)


def zero_sum() -> None:
    pm.ZeroSumNormal("z", sigma=1.5, shape=4)
    pm.ZeroSumNormal("zz", sigma=0.5, shape=(3, 4), n_zerosum_axes=2)


def everything_else() -> None:
    """What must not disturb: data, deterministics, potentials, observations, imputed ones."""
    x = pm.Data("x", np.arange(4.0))
    slope = pm.StudentT("slope", nu=4.0, mu=0.0, sigma=1.0)
    mean = pm.Deterministic("mean", slope * x)
    pm.Potential("pull", -(slope**2))
    pm.Normal("y", mean, 1.0, observed=np.ma.masked_invalid([0.1, 0.9, np.nan, 2.5]))


KINDS = [
    *(positive, interval, simplex, ordered, correlation),
    *(covariance, zero_sum, everything_else),
]


def _built(kind: Callable[[], None]) -> pm.Model:
    with pm.Model() as model:
        kind()
    return model


def _made_trace(model: pm.Model, draws: int = 12) -> tuple[xarray.DataTree, np.ndarray]:
    """A trace of random unconstrained points, constrained by PyMC as its samplers do."""
    rng, point = np.random.default_rng(5), model.initial_point()
    mode = Mode(linker="py", optimizer="fast_compile")
    names = [one.name for one in model.unobserved_value_vars]
    constrain = model.compile_fn(model.unobserved_value_vars, inputs=model.value_vars, mode=mode)
    points = [
        {v.name: rng.normal(size=np.shape(point[v.name])) for v in model.value_vars}
        for _ in range(2 * draws)
    ]
    values = [np.array(one) for one in zip(*map(constrain, points), strict=True)]
    posterior = {
        name: (
            ("chain", "draw", *(f"{name}_{i}" for i in range(x.ndim - 1))),
            x.reshape(2, draws, *x.shape[1:]),
        )
        for name, x in zip(names, values, strict=True)
    }
    unconstrained = np.array(
        [np.concatenate([np.ravel(p[v.name]) for v in model.value_vars]) for p in points]
    )
    kept = {k: v for k, v in posterior.items() if not k.endswith("__")}
    tree = xarray.DataTree.from_dict({"posterior": xarray.Dataset(kept)})
    return tree, unconstrained.reshape(2, draws, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_each_transform_is_exact(kind: Callable[[], None]) -> None:
    with model_pymc.compiling_by_jax():
        model = _built(kind)
        tree, x = _made_trace(model)
        sample = from_pymc(model, tree)
        np.testing.assert_allclose(sample.draws, x, rtol=1e-10, atol=1e-10)
        assert len(set(sample.names)) == x.shape[2]
        density = model_pymc.log_density(model, sample.names)
        for i in (0, 9):
            found = differences(density, sample.x[i])
            size = np.abs(found).max()
            np.testing.assert_allclose(sample.score[i], found, rtol=1e-6, atol=1e-6 * size)


def as_trace(sample: sx.Sample) -> xarray.DataTree:
    """A trace with the variables of a sample."""
    assert sample.variables is not None
    posterior = {name: sample.variables[name] for name in sample.variables.names}
    return xarray.DataTree.from_dict({"posterior": xarray.Dataset(posterior)})


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_points_are_constrained_as_the_draws_are(kind: Callable[[], None]) -> None:
    with model_pymc.compiling_by_jax():
        model = _built(kind)
        tree, _ = _made_trace(model)
        (fresh,) = from_pymc(model, tree, more=8).tried
        assert fresh.variables is not None
        assert set(fresh.variables.names) == set(tree["posterior"].data_vars)
        again = from_pymc(model, as_trace(fresh))
        np.testing.assert_allclose(fresh.draws, again.draws, rtol=1e-8, atol=1e-8)
        size = np.abs(again.scores).max()
        np.testing.assert_allclose(fresh.scores, again.scores, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.parametrize("backend", ["jax", pytest.param("numba", marks=pytest.mark.slow)])
def test_backends_agree(backend: Literal["jax", "numba"]) -> None:
    with model_pymc.compiling_by_jax():
        model = _built(interval)
        tree, _ = _made_trace(model)
        one, other = from_pymc(model, tree), from_pymc(model, tree, backend=backend)
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module")
def bare() -> xarray.DataTree:
    """nutpie's trace without its scores."""
    trace = model_pymc.nutpie_trace()
    stats = trace["sample_stats"].dataset.drop_vars(["gradient", "unconstrained_draw"])
    return xarray.DataTree.from_dict(
        {"posterior": trace["posterior"].dataset, "sample_stats": stats}
    )


def test_the_shared_model_has_the_right_prior_for_its_correlation() -> None:
    """The density of the three free numbers: that of LKJCholesky, and the Jacobian of y / |(y, 1)|."""
    with pm.Model() as model:
        L = pm.LKJCorr("L", n=3, eta=2.0)
        pm.Potential("lkj", model_pymc.lkj_cholesky(L) - pm.logp(pm.LKJCorr.dist(n=3, eta=2.0), L))
    names = [f"L_cholesky_corr__[{i}]" for i in range(3)]
    density = model_pymc.log_density(model, names)
    constrain = model.compile_fn(
        model.unobserved_value_vars, inputs=model.value_vars, mode=Mode(linker="py")
    )
    gaps = []
    for x in np.random.default_rng(0).normal(size=(5, 3)):
        factor = constrain({"L_cholesky_corr__": x})[-1]
        assert factor[0, 1] == 0 and np.allclose((factor**2).sum(axis=1), 1)
        jacobian = 3 * np.log(factor[1, 1]) + 4 * np.log(factor[2, 2])
        gaps.append(density(x) - model_pymc.lkj_cholesky(factor) - jacobian)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-12)


def test_stored_scores_are_the_recomputed_ones(bare: xarray.DataTree) -> None:
    model = model_pymc.model()
    free = from_pymc(model, model_pymc.nutpie_trace())
    with model_pymc.compiling_by_jax():
        recomputed = from_pymc(model, bare, backend="jax")
    assert free.names == recomputed.names == model_pymc.COLUMNS
    np.testing.assert_allclose(free.draws, recomputed.draws, rtol=1e-12, atol=1e-12)
    typical = np.sqrt(np.mean(free.score**2, axis=0))
    assert (np.abs(free.score - recomputed.score) / typical).max() < 1e-10


def test_a_trace_of_nuts_keeps_the_contract_of_adapters() -> None:
    model, trace = model_pymc.model(), model_pymc.pymc_trace()
    density = model_pymc.log_density(model, model_pymc.COLUMNS)
    checks.check_adapter(
        model_pymc.pymc_sample,
        chains=4,
        length=500,
        dim=10,
        names=model_pymc.COLUMNS,
        log_density=density,
    )
    sample = model_pymc.pymc_sample()
    report = sx.audit(sample)
    assert report.passed and report.compared
    typical = np.sqrt(np.mean(sample.score**2, axis=0))
    for i in (0, 700, 1999):
        off = np.abs(sample.score[i] - differences(density, sample.x[i])) / typical
        assert off.max() < 1e-6
    np.testing.assert_array_equal(sample.diverging, trace["sample_stats"]["diverging"])
    found = sx.data.integrands({"ratio": lambda beta, tau: beta[0] / tau}, sample)
    wanted = trace["posterior"]["beta"][..., 0] / trace["posterior"]["tau"]
    np.testing.assert_allclose(found.values[..., 0], wanted)


def test_the_warm_up_of_nuts_is_for_training() -> None:
    model, trace = model_pymc.model(), model_pymc.pymc_trace()
    sample, warm = model_pymc.pymc_sample(), trace["warmup_posterior"].dataset
    part, rows = training_of(sample, warm["beta"].values, slice(3))
    np.testing.assert_allclose(part.draws[..., 3], np.log(warm["tau"][:, rows]), rtol=1e-12)
    density = model_pymc.log_density(model, sample.names)
    typical = np.sqrt(np.mean(part.score**2, axis=0))
    for i in (0, 700, part.size - 1):
        off = np.abs(part.score[i] - differences(density, part.x[i])) / typical
        assert off.max() < 1e-6
    stats = trace["warmup_sample_stats"].dataset
    assert part.log_density is not None
    assert np.ptp(part.log_density - stats["lp"].values[:, rows]) < 1e-6
    assert np.array_equal(part.diverging, stats["diverging"].values[:, rows])  # pyright: ignore
    found = sx.data.integrands(["tau", "w"], part).values
    np.testing.assert_array_equal(found[..., 0], warm["tau"][:, rows])
    np.testing.assert_array_equal(found[..., 1:], warm["w"][:, rows])
    assert f"{part.size} training points" in sx.estimate("tau", sample, sx.Polynomial(2)).note
    with model_pymc.compiling_by_jax():
        same_draws(from_pymc(model, trace, backend="jax", warmup=False), sample)
        bare = trace.filter(lambda node: not node.path.startswith("/warmup"))
        same_draws(from_pymc(model, bare, backend="jax"), sample)
        warmup = trace["warmup_posterior"].to_dataset().drop_vars("tau")
        lacking = trace.assign(warmup_posterior=xarray.DataTree(warmup))
        same_draws(from_pymc(model, lacking, backend="jax"), sample)


def test_the_stored_scores_of_a_warm_up_are_the_recomputed_ones() -> None:
    model, trace = model_pymc.model(), model_pymc.nutpie_trace()
    drop = {
        name: xarray.DataTree(
            trace[name].to_dataset().drop_vars(["gradient", "unconstrained_draw"])
        )
        for name in ("sample_stats", "warmup_sample_stats")
    }
    (free,) = from_pymc(model, trace).training
    with model_pymc.compiling_by_jax():
        (recomputed,) = from_pymc(model, trace.assign(drop), backend="jax").training
        edge = trace.assign(drop)["warmup_posterior"].to_dataset().copy(deep=True)
        edge["tau"][1, 199] = 0.0
        cut = {"warmup_posterior": xarray.DataTree(edge)}
        (late,) = from_pymc(model, trace.assign(drop | cut), backend="jax").training
    assert free.names == recomputed.names == model_pymc.COLUMNS
    np.testing.assert_allclose(free.draws, recomputed.draws, rtol=1e-12, atol=1e-12)
    typical = np.sqrt(np.mean(free.score**2, axis=0))
    assert (np.abs(free.score - recomputed.score) / typical).max() < 1e-10
    assert 0 < late.length < 300
    np.testing.assert_array_equal(late.scores, recomputed.scores[:, -late.length :])


@pytest.mark.alone
def test_four_thousand_draws_take_less_than_a_second(bare: xarray.DataTree) -> None:
    model = model_pymc.model()
    long = xarray.DataTree.from_dict(
        {"posterior": xarray.concat([bare["posterior"].dataset] * 2, dim="draw")}
    )
    with model_pymc.compiling_by_jax():
        from_pymc(model, long, backend="jax")
        start = time.perf_counter()
        sample = from_pymc(model, long, backend="jax")
        took = time.perf_counter() - start
    assert sample.size == 4000
    assert took < 1.0


def test_what_does_not_belong_to_the_model_is_refused() -> None:
    model = _built(interval)
    tree, _ = _made_trace(model)
    posterior = tree["posterior"].dataset
    with pytest.raises(ValueError, match="no u, p, which the model has"):
        from_pymc(model, xarray.DataTree.from_dict({"posterior": posterior.drop_vars(["u", "p"])}))
    short = posterior.isel(u_0=slice(0, 2))
    with pytest.raises(
        ValueError, match=r"u has shape \(2,\) in the trace and \(3,\) in the model"
    ):
        from_pymc(model, xarray.DataTree.from_dict({"posterior": short}))
    outside = posterior.assign(top=-posterior["top"])
    with model_pymc.compiling_by_jax(), pytest.raises(ValueError, match="24 draws of top cannot"):
        from_pymc(model, xarray.DataTree.from_dict({"posterior": outside}), backend="jax")
    top = posterior["top"].copy(deep=True)
    top[1, 7] = np.nan
    missing = xarray.DataTree.from_dict({"posterior": posterior.assign(top=top)})
    with (
        model_pymc.compiling_by_jax(),
        pytest.raises(ValueError, match=r"1 draw of top .* draw 7 of chain 1, which is NaN: give"),
    ):
        from_pymc(model, missing, backend="jax")
    with pytest.raises(TypeError, match="the model first"):
        from_pymc(tree, model)


def test_data_changed_after_sampling_are_noticed() -> None:
    with model_pymc.compiling_by_jax():
        with pm.Model() as model:
            x = pm.Data("x", np.arange(5.0))
            slope = pm.Normal("slope")
            pm.Normal("y", slope * x, 1.0, observed=np.arange(5.0))
            trace = pm.sample(
                nuts_sampler="pymc",
                draws=50,
                tune=50,
                chains=2,
                cores=1,
                random_seed=1,
                progressbar=False,
                compute_convergence_checks=False,
            )
        kept = from_pymc(model, trace, backend="jax")
        with model:
            pm.set_data({"x": np.arange(5.0) + 1})
        with pytest.raises(ValueError, match="with the data it had then"):
            from_pymc(model, trace, backend="jax")
        changed = from_pymc(model, trace, backend="jax", check=False)
        with model:
            pm.set_data({"x": np.arange(7.0)})
        for backend in ("jax", "numpy"):
            with pytest.raises(
                ValueError, match=r"another shape, than .*pm\.set_data, before from"
            ):
                from_pymc(model, trace, backend=backend)
    assert not np.allclose(changed.scores, kept.scores)


def test_draws_of_sequential_monte_carlo() -> None:
    """Its statistics have no axis of draws, and are not needed."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1.0, observed=np.arange(5.0))
        trace = pm.sample_smc(draws=100, chains=2, cores=1, random_seed=1, progressbar=False)
    sample = from_pymc(model, trace)
    assert sample.draws.shape == (2, 100, 1)
    np.testing.assert_allclose(sample.scores, 10 - 6 * sample.draws)


def test_functions_of_pytensor_are_no_integrands() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 2))
    sample = sx.Sample(x, -x, names=["mu", "s"])
    for graph in (lambda mu: 2 * pm.math.exp(mu), lambda mu: pm.math.exp(1.0)):
        with pytest.raises(TypeError, match=r"'a' uses PyTensor.*use jax\.numpy for pm\.math"):
            sx.estimate({"a": graph}, sample)
    for graph in (lambda mu, s: pm.Normal.dist(mu, 2 * s), lambda mu: pm.Normal.dist(0, 1)):
        with pytest.raises(TypeError, match=r"scipy\.stats for pm\.Normal\.dist"):
            sx.predictive(graph, sample).probability(above=0)


def test_discrete_variables_are_refused_with_the_reason() -> None:
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        pm.Bernoulli("switch", p)
    with pytest.raises(
        ValueError, match=r"discrete variables, switch.*no gradient(?s:.*)marginalize"
    ):
        from_pymc(model, xarray.DataTree())
