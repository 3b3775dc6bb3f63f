"""from_numpyro: the free route, the recomputed one, and every transform."""

import copy
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree
from numpyro.infer import HMC, MCMC, NUTS, DiscreteHMCGibbs
from numpyro.infer.util import potential_energy

import steinax as sx
import steinax.checks
from adapters import model_numpyro
from adapters.differences import differences
from adapters.settled import same_draws, training_of
from adapters.shared_model import COUNTS, NAMES, Y
from steinax.adapters import _pytrees
from steinax.adapters._numpyro import from_numpyro

COLUMNS = (
    *(f"L_free__[{i}]" for i in range(3)),
    *(f"beta[{i}]" for i in range(3)),
    "tau_free__",
    *(f"w_free__[{i}]" for i in range(3)),
)
MAY = {"run": True, "evaluate": True}


class Watched(dist.Normal):
    """A Gaussian that says when its density is evaluated although it may not be."""

    def log_prob(self, value: Any) -> Any:
        assert MAY["evaluate"], "the log density was evaluated"
        return super().log_prob(value)


def every_transform(y: Any) -> None:
    """A site of each kind."""
    assert MAY["run"], "the model was run"
    positive = numpyro.sample("positive", dist.HalfNormal(1.0))
    numpyro.sample("interval", dist.Uniform(-1.0, 3.0))
    numpyro.sample("above", dist.TruncatedNormal(0.0, 1.0, low=0.5))
    numpyro.sample("simplex", dist.Dirichlet(jnp.full(3, 2.0)))
    ordered = dist.transforms.OrderedTransform()
    steps = dist.Normal(jnp.zeros(3), 1.0).to_event(1)
    numpyro.sample("ordered", dist.TransformedDistribution(steps, ordered))
    numpyro.sample("cholesky", dist.LKJCholesky(3, 1.5))
    numpyro.sample("correlation", dist.LKJ(3, 1.5))
    numpyro.sample("matrix", dist.Normal(jnp.zeros((2, 3)), 1.0).to_event(2))
    with numpyro.plate("school", 3), numpyro.plate("year", 2):
        effect = numpyro.sample("effect", dist.Gamma(2.0, 1.0))
    numpyro.deterministic("total", positive + jnp.sum(effect))
    with numpyro.plate("data", 4):
        numpyro.sample("y", Watched(positive, 1.0), obs=y)


def dependent_support(y: Any) -> None:
    """What is below tau depends on tau."""
    assert MAY["run"], "the model was run"
    tau = numpyro.sample("tau", dist.LogNormal(0.0, 1.0))
    below = numpyro.sample("below", dist.Uniform(0.0, tau))
    numpyro.sample("y", Watched(below, 1.0), obs=y)


DATA = np.array([0.3, 1.2, 0.7, -0.1])
EVERY = [
    "above",
    "cholesky",
    "correlation",
    "effect",
    "interval",
    "matrix",
    "ordered",
    "positive",
    "simplex",
]


def sampled(model: Any, *fields: str, chains: int = 2, double: bool = True) -> MCMC:
    """A short run: scores are right or wrong at any draw, wherever the chain has come to."""
    MAY.update(run=True, evaluate=True)
    with jax.enable_x64(double):
        kernel = HMC(model, num_steps=3, adapt_step_size=False, step_size=0.1)
        mcmc = MCMC(
            kernel,
            num_warmup=0,
            num_samples=25,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(7), jnp.asarray(DATA), extra_fields=fields)
    return mcmc


def keeping(mcmc: MCMC, *fields: str) -> MCMC:
    """The same run as if only these extra fields had been asked for."""
    run = copy.copy(mcmc)
    kept = {"z", "diverging", *fields}
    run._states = {name: value for name, value in mcmc._states.items() if name in kept}
    return run


def flat_density(model: Any, args: tuple[Any, ...], mcmc: MCMC) -> Any:
    """The sampler's own log density, of the columns side by side."""
    with jax.enable_x64(True):
        one = jax.tree.map(lambda leaf: leaf[0], mcmc.last_state.z)
        _, unravel = ravel_pytree(one)
        density = jax.jit(lambda x: -potential_energy(model, args, {}, unravel(x)))

    def evaluate(x: np.ndarray) -> float:
        with jax.enable_x64(True):
            return float(density(jnp.asarray(x)))

    return evaluate


def furthest(sample: sx.Sample, density: Any, every: int) -> float:
    """The largest error of a score, relative to the typical one of its column."""
    some = np.arange(0, sample.size, every)
    found = np.array([differences(density, x) for x in sample.x[some]])
    typical = np.sqrt(np.mean(found**2, axis=0))
    return float(np.max(np.abs(sample.score[some] - found) / typical))


@pytest.fixture(scope="module")
def zoo() -> MCMC:
    return sampled(every_transform, "z_grad", *(f"z.{name}" for name in EVERY))


@pytest.fixture(scope="module")
def shared() -> MCMC:
    return model_numpyro.run(draws=250)


@pytest.mark.slow
def test_the_free_route_runs_no_model_code(zoo: MCMC) -> None:
    MAY.update(run=False, evaluate=False)
    exact = from_numpyro(zoo)
    found = from_numpyro(keeping(zoo, "z_grad"))
    assert exact.names == found.names and exact.variables is not None
    np.testing.assert_array_equal(exact.scores, found.scores)
    np.testing.assert_allclose(found.draws, exact.draws, rtol=1e-10, atol=1e-10)
    assert exact.variables["total"].shape == (2, 25)
    assert exact.diverging is not None and exact.diverging.shape == (2, 25)
    names = set(exact.names)
    assert {"above_free__", "interval_free__", "matrix[1, 2]", "effect_free__[1, 2]"} <= names
    assert {"cholesky_free__[2]", "correlation_free__[2]", "ordered_free__[0]"} <= names
    assert not {"simplex[0]", "simplex_free__[2]", "ordered[0]", "positive"} & names


@pytest.mark.slow
def test_all_routes_agree_on_every_transform(zoo: MCMC) -> None:
    MAY.update(run=True, evaluate=True)
    free = from_numpyro(zoo)
    again = from_numpyro(keeping(zoo))
    draws = zoo.get_samples(group_by_chain=True)
    latent = {name: value for name, value in draws.items() if name != "total"}
    stored = from_numpyro(every_transform, latent, model_args=(DATA,), log_likelihood=True)
    for other in (again, stored):
        assert other.names == free.names
        np.testing.assert_allclose(other.draws, free.draws, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other.scores, free.scores, rtol=1e-8, atol=1e-8)
    assert stored.variables is not None
    np.testing.assert_allclose(stored.variables["total"], draws["total"], rtol=1e-12)
    assert stored.variables["effect"].dims == ("chain", "draw", "year", "school")
    expected = dist.Normal(np.asarray(draws["positive"])[..., None], 1.0).log_prob(DATA)
    np.testing.assert_allclose(stored.variables["log_likelihood/y"], expected, rtol=1e-5)


@pytest.mark.slow
def test_every_transform_agrees_with_finite_differences_to_1e_6(zoo: MCMC) -> None:
    MAY.update(run=True, evaluate=True)
    density = flat_density(every_transform, (DATA,), zoo)
    assert furthest(from_numpyro(zoo), density, 10) < 1e-6


def test_a_dependent_support_costs_one_trace_and_no_density() -> None:
    mcmc = sampled(dependent_support, "z_grad", "z.below", "z.tau")
    MAY.update(run=False, evaluate=False)
    exact = from_numpyro(mcmc)
    MAY.update(run=True)
    traced = from_numpyro(keeping(mcmc, "z_grad"))
    np.testing.assert_allclose(traced.draws, exact.draws, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(traced.scores, exact.scores)
    assert exact.names == ("below_free__", "tau_free__")


@pytest.mark.slow
def test_plates_name_the_axes_when_there_are_labels_for_them(zoo: MCMC) -> None:
    MAY.update(run=True, evaluate=False)
    coords = {"school": ["a", "b", "c"]}
    labelled = from_numpyro(zoo, coords=coords)
    assert sx.data.integrands("effect", labelled).names[:2] == ("effect[0, a]", "effect[0, b]")
    other = from_numpyro(zoo, coords=coords, dims={"simplex": ["part"]})
    assert sx.data.integrands("effect", other).names[:2] == ("effect[0, a]", "effect[0, b]")
    assert other.variables is not None and other.variables["simplex"].dims[2:] == ("part",)
    MAY.update(run=False)
    dims = {"effect": ["time", "school"]}
    named = from_numpyro(zoo, dims=dims)
    assert named.variables is not None and named.variables["effect"].dims[2:] == ("time", "school")


def test_a_run_in_float32() -> None:
    mcmc = sampled(dependent_support, "z_grad", double=False)
    stored, again = from_numpyro(mcmc), from_numpyro(mcmc, rescore=True)
    assert stored.dtype == again.dtype == np.float64
    np.testing.assert_array_equal(stored.draws, again.draws)
    typical = np.sqrt(np.mean(again.scores**2, axis=(0, 1)))
    assert 0 < np.max(np.abs(stored.scores - again.scores) / typical) < 1e-4
    density = flat_density(dependent_support, (DATA,), mcmc)
    assert furthest(again, density, 10) < 1e-6
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_scores_after_a_run_in_float32_are_computed_in_float64(kind: str) -> None:
    """Jax goes on with the float32 copy of a NumPy array that it made for the run, which is 1e-6 off."""
    rng = np.random.default_rng(1)
    given = rng.normal(size=(200, 3))
    counts = rng.poisson(np.exp(0.3 * given @ [0.5, -1.0, 2.0]))
    columns = jnp.asarray(given, jnp.float32) if kind == "jax" else given

    def model() -> None:
        beta = numpyro.sample("beta", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
        numpyro.sample("y", dist.Poisson(jnp.exp(columns @ beta)), obs=counts)

    mcmc = MCMC(NUTS(model), num_warmup=100, num_samples=50, progress_bar=False)
    mcmc.run(jax.random.key(0), extra_fields=("z_grad",))
    exact = np.asarray(columns, np.float64)
    off = []
    for rescore in (False, True):
        sample = from_numpyro(mcmc, rescore=rescore)
        right = (counts - np.exp(sample.x @ exact.T)) @ exact - sample.x / 4
        off.append(np.abs(sample.score - right).max() / np.abs(right).max())
    assert off[0] > 1e-8 and off[1] < 1e-13
    assert not jax.config.jax_enable_x64


def test_a_potential_without_a_model() -> None:
    def potential(z: Any) -> Any:
        return jnp.sum(z["b"] ** 2) / 2 + z["a"] ** 4

    mcmc = MCMC(NUTS(potential_fn=potential), num_warmup=20, num_samples=20, progress_bar=False)
    start = {"b": jnp.zeros(2), "a": jnp.ones(())}
    mcmc.run(jax.random.key(0), init_params=start, extra_fields=("z_grad",))
    free, again = from_numpyro(mcmc), from_numpyro(mcmc, rescore=True)
    assert free.names == ("a", "b[0]", "b[1]")
    np.testing.assert_allclose(free.scores, again.scores, rtol=1e-5)
    np.testing.assert_allclose(again.scores[..., 1:], -again.draws[..., 1:])


def mixture(y: Any) -> None:
    which = numpyro.sample("which", dist.Bernoulli(0.3))
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mu + which, 1.0), obs=y)


def test_what_has_no_score_is_refused_with_what_to_do() -> None:
    MAY.update(run=True, evaluate=True)
    draws = {"mu": np.zeros((2, 5)), "which": np.zeros((2, 5), int)}
    with pytest.raises(ValueError, match=r"which are discrete.*sum them out"):
        from_numpyro(mixture, draws, model_args=(DATA,))
    gibbs = MCMC(DiscreteHMCGibbs(NUTS(mixture)), num_warmup=2, num_samples=2, progress_bar=False)
    gibbs.run(jax.random.key(0), jnp.asarray(DATA))
    with pytest.raises(ValueError, match="DiscreteHMCGibbs"):
        from_numpyro(gibbs)
    fresh = MCMC(NUTS(mixture), num_warmup=2, num_samples=2, progress_bar=False)
    with pytest.raises(ValueError, match="has not been run"):
        from_numpyro(fresh)
    with pytest.raises(ValueError, match="give it alone"):
        from_numpyro(fresh, draws)
    with pytest.raises(ValueError, match=r"from_numpyro\(model, samples\)"):
        from_numpyro(mixture)


def test_draws_that_are_not_by_chain_or_not_there_are_refused() -> None:
    MAY.update(run=True, evaluate=True)
    with pytest.raises(ValueError, match=r"below have shape \(50,\).*group_by_chain=True"):
        flat = {"below": np.full(50, 0.5), "tau": np.ones(50)}
        from_numpyro(dependent_support, flat, model_args=(DATA,))
    with pytest.raises(ValueError, match="no draws of below"):
        from_numpyro(dependent_support, {"tau": np.ones((2, 5))}, model_args=(DATA,))


def test_a_value_rounded_to_the_edge_is_refused() -> None:
    MAY.update(run=True, evaluate=True)
    edge = {"tau": np.ones((2, 5)), "below": np.full((2, 5), 0.0)}
    with pytest.raises(ValueError, match=r"below.*z\.below"):
        from_numpyro(dependent_support, edge, model_args=(DATA,))


@pytest.fixture(scope="module")
def warmed() -> tuple[MCMC, Any, Any]:
    """A run, and what was kept of its warm-up before it: draws and extra fields."""
    MAY.update(run=True, evaluate=True)
    fields = ("z_grad", "potential_energy", "z.below", "z.tau")
    with jax.enable_x64(True):
        settings = {"num_chains": 2, "chain_method": "vectorized", "progress_bar": False}
        kernel = HMC(dependent_support, trajectory_length=2.0)
        mcmc = MCMC(kernel, num_warmup=200, num_samples=100, **settings)
        data = jnp.asarray(DATA)
        mcmc.warmup(jax.random.key(3), data, extra_fields=fields, collect_warmup=True)
        kept = mcmc.get_samples(group_by_chain=True), mcmc.get_extra_fields(group_by_chain=True)
        mcmc.run(mcmc.post_warmup_state.rng_key, data, extra_fields=fields)
    return mcmc, *kept


def test_the_warm_up_that_was_kept_is_for_training(warmed: tuple[MCMC, Any, Any]) -> None:
    mcmc, draws, fields = warmed
    MAY.update(run=False, evaluate=False)
    bare, sample = from_numpyro(mcmc), from_numpyro(mcmc, warmup=(draws, fields))
    same_draws(bare, sample)
    same_draws(from_numpyro(mcmc, warmup=False), sample)
    x = np.stack([fields["z.below"], fields["z.tau"]], axis=-1)
    part, rows = training_of(sample, x)
    np.testing.assert_array_equal(part.scores[..., 1], -fields["z_grad"]["tau"][:, rows])
    assert np.array_equal(part.diverging, fields["diverging"][:, rows])  # pyright: ignore
    assert np.array_equal(part.log_density, -fields["potential_energy"][:, rows])  # pyright: ignore
    assert part.variables is not None
    np.testing.assert_array_equal(part.variables["tau"], draws["tau"][:, rows])
    assert f"{part.size} training points" in sx.estimate("tau", sample, sx.Polynomial(2)).note


def test_the_scores_of_a_warm_up_are_computed(warmed: tuple[MCMC, Any, Any]) -> None:
    mcmc, draws, fields = warmed
    MAY.update(run=True, evaluate=True)
    (free,) = from_numpyro(mcmc, warmup=(draws, fields)).training
    run = mcmc.get_samples(group_by_chain=True)
    for sample in (
        from_numpyro(mcmc, warmup=draws),
        from_numpyro(dependent_support, run, model_args=(DATA,), warmup=draws),
    ):
        (part,) = sample.training
        np.testing.assert_allclose(part.draws, free.draws, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(part.scores, free.scores, rtol=1e-6, atol=1e-6)
        assert part.variables is not None and part.variables["tau"].shape == part.draws.shape[:2]
    assert furthest(part, flat_density(dependent_support, (DATA,), mcmc), 20) < 1e-6
    edge = {**draws, "below": np.where(np.arange(200) < 50, 0.0, draws["below"])}
    (late,) = from_numpyro(mcmc, warmup=edge).training
    (later,) = from_numpyro(mcmc, warmup={k: v[:, 50:] for k, v in draws.items()}).training
    np.testing.assert_array_equal(late.scores, later.scores)


def test_fresh_points_have_the_scores_and_sites_of_the_model(
    warmed: tuple[MCMC, Any, Any],
) -> None:
    mcmc, draws, fields = warmed
    MAY.update(run=True, evaluate=True)
    run = mcmc.get_samples(group_by_chain=True)
    for sample in (
        from_numpyro(mcmc, warmup=(draws, fields), more=40),
        from_numpyro(dependent_support, run, model_args=(DATA,), warmup=draws, more=40),
    ):
        (fresh,), (before,) = sample.tried, sample.training
        assert before.size and fresh.draws.shape == (1, 40, 2) and fresh.names == sample.names
        assert furthest(fresh, flat_density(dependent_support, (DATA,), mcmc), 20) < 1e-6
        assert fresh.variables is not None
        tau, below = fresh.variables["tau"], fresh.variables["below"]
        np.testing.assert_allclose(np.log(tau), fresh.draws[..., 1], rtol=1e-9, atol=1e-9)
        assert ((below > 0) & (below < tau)).all()
    assert "40 fresh training points tried" in sx.estimate("tau", sample, sx.Polynomial(2)).note


def test_a_warm_up_of_another_kind_is_refused(warmed: tuple[MCMC, Any, Any]) -> None:
    mcmc, draws, _ = warmed
    with pytest.raises(ValueError, match=r"NumPyro does not keep its warm-up: call mcmc\.warmup"):
        from_numpyro(mcmc, warmup=True)
    for wrong in (
        {"tau": draws["tau"]},
        {name: values[:1] for name, values in draws.items()},
        {name: values.reshape(-1) for name, values in draws.items()},
    ):
        with pytest.raises(ValueError, match=r"in \['below'\].*group_by_chain=True"):
            from_numpyro(mcmc, warmup=wrong)
    edge = {**draws, "below": np.zeros((2, 200))}
    with pytest.raises(ValueError, match=r"not finite.*or leave `warmup` out"):
        from_numpyro(mcmc, warmup=edge)


@pytest.mark.slow
def test_the_shared_model(shared: MCMC) -> None:
    sample = from_numpyro(shared)
    report = sx.audit(sample)
    assert sample.names == COLUMNS and report.passed and report.compared
    assert sample.variables is not None and set(sample.variables.names) == set(NAMES)
    density = flat_density(model_numpyro.model, (Y, COUNTS), shared)
    assert furthest(sample, density, 100) < 1e-6
    sx.checks.check_adapter(
        lambda: from_numpyro(shared),
        chains=4,
        length=250,
        dim=10,
        names=COLUMNS,
        log_density=density,
    )


@pytest.mark.slow
@pytest.mark.alone
def test_4000_draws_are_scored_in_a_second_after_compilation(shared: MCMC) -> None:
    position = from_numpyro(shared).x
    with jax.enable_x64(True):
        _, unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], shared.last_state.z))
        z = jax.tree.map(np.asarray, jax.vmap(unravel)(np.tile(position, (4, 1))))
        potential = shared.sampler.get_potential_fn(shared._args, shared._kwargs)
        run = _pytrees.compiled_over_draws(jax.value_and_grad(potential), z)
        start = time.perf_counter()
        jax.block_until_ready(run(z))
        assert time.perf_counter() - start < 1.0
