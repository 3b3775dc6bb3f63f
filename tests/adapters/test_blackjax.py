"""from_blackjax: what the states hold, and the order of their axes."""

from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc.hmc import HMCState

import steinax as sx
import steinax.checks
from adapters import model_blackjax
from adapters.differences import differences
from adapters.settled import same_draws, training_of
from adapters.shared_model import NAMES
from steinax.adapters._blackjax import from_blackjax

CALLS = {"allowed": True}
DIAGONAL = jnp.ones(2)


def watched(z: Any) -> Any:
    """The log density of the shared model, which must not be called after sampling."""
    assert CALLS["allowed"], "the log density was called"
    return model_blackjax.log_density(z)


@pytest.fixture(scope="module")
def history() -> Any:
    CALLS["allowed"] = True
    found = model_blackjax.run(draws=200, density=watched)
    CALLS["allowed"] = False
    return found


@pytest.fixture(scope="module")
def sample(history: Any) -> sx.Sample:
    states, infos = history
    return from_blackjax(states, infos, axes=("chain", "draw"), constrain=model_blackjax.constrain)


def gaussian(x: Any) -> Any:
    x = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(x)])
    return -jnp.sum(x**2) / 2


def scan(algorithm: Any, start: Any, draws: int = 100) -> Any:
    """The states of one chain, (draw, ...)."""
    key = jax.random.key(1)
    first = algorithm.init(start, key)

    def step(state: Any, key: Any) -> Any:
        state, info = algorithm.step(key, state)
        return state, (state, info)

    return jax.lax.scan(step, first, jax.random.split(key, draws))[1]


@pytest.mark.slow
def test_the_shared_model_without_a_call_of_its_density(sample: sx.Sample) -> None:
    assert sample.draws.shape == (4, 200, 10)
    assert sample.names[2:4] == ("L_free__[2]", "beta[0]") and sample.names[6] == "log_tau"
    assert sample.variables is not None and set(sample.variables.names) == set(NAMES)
    assert sample.diverging is not None and sample.diverging.shape == (4, 200)
    report = sx.audit(sample)
    assert report.passed and report.compared


@pytest.mark.slow
def test_scores_agree_with_finite_differences_to_1e_6(sample: sx.Sample) -> None:
    some = np.arange(0, sample.size, 80)
    found = np.array([differences(model_blackjax.flat_log_density, x) for x in sample.x[some]])
    typical = np.sqrt(np.mean(found**2, axis=0))
    assert np.max(np.abs(sample.score[some] - found) / typical) < 1e-6


@pytest.mark.slow
def test_keeps_the_contract_of_adapters(history: Any) -> None:
    sx.checks.check_adapter(
        lambda: from_blackjax(history[0], axes=("chain", "draw")),
        chains=4,
        length=200,
        dim=10,
        log_density=model_blackjax.flat_log_density,
    )


@pytest.mark.slow
def test_axes_must_be_told_and_true(history: Any) -> None:
    states, infos = history
    with pytest.raises(ValueError, match="two leading axes, of 4 and 200: say which"):
        from_blackjax(states)
    with pytest.raises(ValueError, match="infos are of"):
        from_blackjax(states, jax.tree.map(lambda a: a[:, :9], infos), axes=("chain", "draw"))
    with pytest.raises(ValueError, match=r"from_blackjax\(states, infos\)"):
        from_blackjax((states, infos))
    turned = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), states)
    right = from_blackjax(states, axes=("chain", "draw"))
    same = from_blackjax(turned, axes=("draw", "chain"))
    np.testing.assert_array_equal(same.scores, right.scores)


def autocorrelated(chains: int, draws: int) -> Any:
    """States of independent AR(1) chains with correlation 0.6, (chain, draw, 2)."""
    noise = np.random.default_rng(2).normal(size=(chains, draws, 2))
    x = noise.copy()
    for i in range(1, draws):
        x[:, i] = 0.6 * x[:, i - 1] + 0.8 * noise[:, i]
    return HMCState(x, -np.sum(x**2, axis=-1) / 2, -x)


@pytest.mark.parametrize("shape", [(2, 500), (4, 100), (50, 60), (500, 20)])
def test_swapped_axes_are_refused_and_right_ones_are_not(shape: tuple[int, int]) -> None:
    states = autocorrelated(*shape)
    assert from_blackjax(states, axes=("chain", "draw")).draws.shape == (*shape, 2)
    with pytest.raises(ValueError, match="cannot be right"):
        from_blackjax(states, axes=("draw", "chain"))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: blackjax.hmc(gaussian, 0.5, DIAGONAL, 3), "hmc"),
        (lambda: blackjax.nuts(gaussian, 0.5, DIAGONAL), "nuts"),
        (lambda: blackjax.dynamic_hmc(gaussian, 0.5, DIAGONAL), "dynamic_hmc"),
        (lambda: blackjax.mala(gaussian, 0.3), "mala"),
        (lambda: blackjax.barker_proposal(gaussian, 0.5), "barker"),
        (lambda: blackjax.mclmc(gaussian, 1.0, 0.3), "mclmc"),
        (lambda: blackjax.ghmc(gaussian, 0.3, DIAGONAL, 0.9, 0.2), "ghmc"),
        (lambda: blackjax.rmhmc(gaussian, 0.3, lambda x: DIAGONAL, 2), "rmhmc"),
    ],
)
def test_every_sampler_that_keeps_gradients(make: Any, name: str) -> None:
    states, infos = scan(make(), {"b": jnp.zeros(()), "a": jnp.ones(())})
    sample = from_blackjax(states, infos)
    assert sample.names == ("a", "b") and sample.draws.shape == (1, 100, 2)
    np.testing.assert_allclose(sample.scores, -sample.draws, rtol=1e-5, atol=1e-6)
    assert (sample.diverging is None) == (name in {"mala", "barker", "mclmc"})


@pytest.mark.parametrize(
    "make",
    [
        lambda: blackjax.rmh(gaussian, lambda key, x: x + jax.random.normal(key, x.shape)),
        lambda: blackjax.irmh(gaussian, lambda key: jax.random.normal(key, (2,))),
        lambda: blackjax.elliptical_slice(gaussian, mean=jnp.zeros(2), cov=jnp.eye(2)),
        lambda: blackjax.mgrad_gaussian(gaussian, jnp.eye(2), mean=jnp.zeros(2)),
    ],
)
def test_samplers_without_the_gradient_are_sent_to_from_logdensity(make: Any) -> None:
    states, _ = scan(make(), jnp.zeros(2), draws=5)
    with pytest.raises(ValueError, match="from_logdensity"):
        from_blackjax(states)


def test_an_array_of_positions_and_float32() -> None:
    states, _ = scan(blackjax.nuts(gaussian, 0.5, DIAGONAL), jnp.zeros(2))
    sample = from_blackjax(states, constrain=lambda x: {"tau": jnp.exp(x[0])})
    assert sample.names == ("x[0]", "x[1]") and sample.dtype == np.float64
    assert sample.variables is not None
    np.testing.assert_allclose(sample.variables["tau"], np.exp(sample.draws[..., 0]), rtol=1e-15)


def test_scores_after_a_run_in_float32_are_computed_in_float64() -> None:
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(200, 2))
    counts = rng.poisson(np.exp(0.3 * columns @ [0.5, -1.0]))

    def log_density(beta: Any) -> Any:
        rate = columns @ beta
        return jnp.sum(counts * rate - jnp.exp(rate)) - jnp.sum(beta**2) / 8

    states, _ = jax.jit(lambda: scan(blackjax.nuts(log_density, 0.02, DIAGONAL), jnp.zeros(2)))()
    off = []
    for sample in (from_blackjax(states), from_blackjax(states, log_density=log_density)):
        right = (counts - np.exp(sample.x @ columns.T)) @ columns - sample.x / 4
        off.append(np.abs(sample.score - right).max() / np.abs(right).max())
    assert off[0] > 1e-8 and off[1] < 1e-13


def test_another_log_density_than_the_one_sampled_is_refused() -> None:
    states, _ = scan(blackjax.nuts(gaussian, 0.5, DIAGONAL), jnp.zeros(2))
    assert from_blackjax(states, log_density=lambda x: gaussian(x) + 3.0).verified
    with pytest.raises(ValueError, match="not the log density of these draws"):
        from_blackjax(states, log_density=lambda x: gaussian(x) + 0.5 * x[0])


@pytest.fixture(scope="module")
def adapted() -> Any:
    """States and infos of three chains after an adaptation for each, and what that returned."""
    algorithm = blackjax.window_adaptation(blackjax.nuts, gaussian)
    start = {"b": jnp.full((), 9.0), "a": jnp.full((), -9.0)}

    def one_chain(key: Any) -> Any:
        (state, parameters), info = algorithm.run(key, start, 150)
        step = blackjax.nuts(gaussian, **parameters).step

        def move(state: Any, key: Any) -> Any:
            state, info = step(key, state)
            return state, (state, info)

        keys = jax.random.split(jax.random.fold_in(key, 1), 100)
        return jax.lax.scan(move, state, keys)[1], info

    return jax.jit(jax.vmap(one_chain))(jax.random.split(jax.random.key(4), 3))


def test_the_warm_up_is_for_training(adapted: Any) -> None:
    (states, infos), warmup = adapted
    x = np.stack([warmup.state.position[name] for name in "ab"], axis=-1).astype(float)
    settings: Any = {"constrain": lambda z: {"sum": z["a"] + z["b"]}}
    sample = from_blackjax(states, infos, axes=("chain", "draw"), warmup=warmup, **settings)
    part, rows = training_of(sample, x)
    np.testing.assert_allclose(part.scores, -part.draws, rtol=1e-6)
    assert np.array_equal(part.log_density, warmup.state.logdensity[:, rows])  # pyright: ignore
    assert np.array_equal(part.diverging, warmup.info.is_divergent[:, rows])  # pyright: ignore
    assert part.variables is not None and sample.variables is not None
    np.testing.assert_array_equal(part.variables["sum"], part.draws.sum(axis=-1))
    assert f"{part.size} training points" in sx.estimate("sum", sample, sx.Polynomial(1)).note
    bare = from_blackjax(states, infos, axes=("chain", "draw"), **settings)
    same_draws(bare, sample)
    assert from_blackjax(states, axes=("chain", "draw"), warmup=False).training == ()


def test_a_warm_up_has_the_axes_that_fit(adapted: Any) -> None:
    (states, _), warmup = adapted
    (right,) = from_blackjax(states, axes=("chain", "draw"), warmup=warmup).training
    turned, late = (
        jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), tree) for tree in (states, warmup.state)
    )
    for one in (warmup, warmup.state, late):
        for other, axes in ((states, ("chain", "draw")), (turned, ("draw", "chain"))):
            (part,) = from_blackjax(other, axes=axes, warmup=one).training
            np.testing.assert_array_equal(part.scores, right.scores)
    (single, alone) = (jax.tree.map(lambda leaf: leaf[0], tree) for tree in (states, warmup))
    x = np.stack([alone.state.position[name] for name in "ab"], axis=-1).astype(float)
    training_of(from_blackjax(single, warmup=alone), x[None])
    training_of(from_blackjax(states, axes=("chain", "draw"), warmup=alone), x[None])


def test_the_scores_of_a_warm_up_are_computed_where_they_are_finite(adapted: Any) -> None:
    (states, _), warmup = adapted

    def log_density(z: Any) -> Any:
        return jnp.where(z["a"] < edge, jnp.nan, gaussian(z))

    edge = float(states.position["a"].min()) - 0.1
    sample = from_blackjax(states, axes=("chain", "draw"), log_density=log_density, warmup=warmup)
    a = np.asarray(warmup.state.position["a"])
    outside = np.flatnonzero((a < edge).any(axis=0))
    assert len(outside)  # it started at -9
    x = np.stack([a, warmup.state.position["b"]], axis=-1).astype(float)
    part, _ = training_of(sample, x[:, outside[-1] + 1 :])
    np.testing.assert_allclose(part.scores, -part.draws, rtol=1e-15)


def test_a_warm_up_without_gradients_is_refused(adapted: Any) -> None:
    (states, _), warmup = adapted
    for bad in (warmup._replace(state=warmup.state._replace(logdensity_grad=None)), "states"):
        with pytest.raises(ValueError, match=r"has no .*logdensity_grad: give the second value"):
            from_blackjax(states, axes=("chain", "draw"), warmup=bad)
    small = jax.tree.map(lambda leaf: leaf, warmup.state)._replace(
        position={"a": warmup.state.position["a"]},
        logdensity_grad={"a": warmup.state.position["a"]},
    )
    with pytest.raises(ValueError, match=r"\(3, 150, 1\).*\(3, 100, 2\): give the warm-up draws"):
        from_blackjax(states, axes=("chain", "draw"), warmup=small)
