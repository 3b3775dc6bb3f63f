"""record: the points at which real samplers evaluate a log density, their values and gradients."""

import gc
import inspect
import pickle

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from numpyro.infer import MCMC, NUTS

import steinax as sx
from steinax.adapters import _recorder
from steinax.adapters._recorder import record

SCALES = np.array([1.0, 0.5, 2.0])
X = np.random.default_rng(5).normal(size=(4, 3))


def quartic(x):
    return -jnp.sum((x / jnp.array(SCALES.tolist())) ** 2) / 2 - x[0] ** 2 * x[1] ** 2 / 4


def score(x):
    """Of `quartic`, by hand."""
    both = np.stack([x[:, 0] * x[:, 1] ** 2, x[:, 0] ** 2 * x[:, 1], 0 * x[:, 0]], axis=1) / 2
    return -x / SCALES**2 - both


def rows(array):
    return {row.tobytes() for row in np.asarray(array, np.float64).reshape(-1, 3)}


def nuts(density, draws=30, chains=4):
    """Positions and numbers of leapfrog steps, (chain, draw, ...): a scan inside vmap inside jit."""
    kernel = blackjax.nuts(density, step_size=0.4, inverse_mass_matrix=jnp.ones(3))

    def one_chain(key, start):
        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, kernel.init(start), jax.random.split(key, draws))[1]

    keys = jax.random.split(jax.random.key(0), chains)
    positions, steps = jax.jit(jax.vmap(one_chain))(keys, jnp.asarray(X[:chains]))
    return np.asarray(positions), np.asarray(steps)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("every", [1, 2])
def test_values_and_gradients_are_those_of_the_function(double, every):
    with jax.enable_x64(double):
        recorded = record(quartic, every=every)
        x = jnp.asarray(X)
        tolerance = 1e-14 if double else 1e-6
        for transform in (lambda f: f, jax.value_and_grad, jax.hessian, jax.jacfwd):
            mapped = [jax.jit(jax.vmap(transform(f))) for f in (recorded, quartic)]
            for ours, theirs in zip(
                jax.tree.leaves(mapped[0](x)),
                jax.tree.leaves(mapped[1](x)),
                strict=True,
            ):
                assert ours.dtype == theirs.dtype
                np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("double", [False, True])
def test_every_leapfrog_step_of_nuts_under_jit_vmap_and_scan(double):
    with jax.enable_x64(double):
        recorded = record(quartic, every=1)
        positions, steps = nuts(recorded)
        sample = recorded.sample()
    # A chain whose trajectory has ended waits for the longest, and repeats its next doubling meanwhile: at
    # most as many points again and one, and one for each doubling that ended early. Four points are starts.
    extras = (steps + 1 + np.ceil(np.log2(steps + 1))).sum()
    assert steps.sum() + 4 <= sample.length <= steps.sum() + 4 + extras
    (inbox,) = recorded._inboxes.values()
    assert inbox.seen % 4 == 0 and inbox.seen >= 4 * (steps.max(axis=0).sum() + 1)
    assert rows(positions) | rows(X.astype(positions.dtype)) <= rows(sample.draws)
    x = sample.x
    accuracy = 1e-12 if double else 1e-4
    np.testing.assert_allclose(sample.score, score(x), rtol=accuracy, atol=accuracy)
    assert sample.log_density is not None and sample.verified and sample.single != double
    expected = -((x / SCALES) ** 2).sum(1) / 2 - x[:, 0] ** 2 * x[:, 1] ** 2 / 4
    np.testing.assert_allclose(sample.log_density[0], expected, rtol=accuracy, atol=accuracy)


def test_one_chain_without_vmap_records_exactly_the_steps_and_the_start():
    recorded = record(quartic, every=1)
    kernel = blackjax.nuts(recorded, step_size=0.4, inverse_mass_matrix=jnp.ones(3))
    state = jax.jit(kernel.init)(jnp.asarray(X[0]))
    step, total = jax.jit(kernel.step), 1
    for key in jax.random.split(jax.random.key(1), 20):
        state, info = step(key, state)
        total += int(info.num_integration_steps)
    assert len(recorded) == total
    assert (
        repr(recorded) == f"Recorder({total} points, 3 dimensions, of {total} recorded evaluations)"
    )


@pytest.mark.slow
def test_a_share_of_the_steps():
    recorded = record(quartic, every=4)
    everything = record(quartic, every=1)
    nuts(recorded, 100)
    nuts(everything, 100)
    assert rows(recorded.sample().draws) < rows(everything.sample().draws)
    assert 0.15 < len(recorded) / len(everything) < 0.35


@pytest.mark.slow
def test_the_warm_up_of_blackjax_can_be_forgotten():
    recorded = record(lambda z: quartic(jnp.concatenate([z["b"], z["a"][None]])), every=1)
    warm = blackjax.window_adaptation(blackjax.nuts, recorded)
    (state, _), _ = warm.run(jax.random.key(2), {"b": jnp.ones(2), "a": jnp.ones(())}, 50)
    sample = recorded.sample(constrain=lambda z: {"a": jnp.exp(z["a"]), "b": z["b"]})
    assert sample.names == ("a_free__", "b[0]", "b[1]")  # the order of ravel_pytree
    np.testing.assert_allclose(
        sample.score[:, [1, 2, 0]], score(sample.x[:, [1, 2, 0]]), rtol=1e-4, atol=1e-4
    )
    assert sample.variables is not None
    np.testing.assert_allclose(sample.variables["a"], np.exp(sample.draws[..., 0]), rtol=1e-12)
    assert recorded.sample().names == ("a", "b[0]", "b[1]") and len(recorded) > 300
    recorded.clear()
    assert len(recorded) == 0 and bool(recorded)
    jax.grad(recorded)(state.position)
    assert len(recorded) == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vectorized", "sequential"])
def test_the_potential_of_numpyro(method):
    recorded = record(lambda z: -quartic(z), potential=True, every=1)
    kernel = NUTS(potential_fn=recorded)
    mcmc = MCMC(
        kernel,
        num_warmup=20,
        num_samples=20,
        num_chains=2,
        chain_method=method,
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0), init_params=jnp.asarray(X[:2]), extra_fields=("num_steps",))
    steps = int(mcmc.get_extra_fields()["num_steps"].sum())
    sample = recorded.sample()
    assert sample.length > steps and rows(mcmc.get_samples()) <= rows(sample.draws)
    np.testing.assert_allclose(sample.score, score(sample.x), rtol=1e-4, atol=1e-4)
    assert sample.log_density is not None and sample.log_density.max() < 0.0


def test_a_loop_in_numpy_has_its_scores_computed_afterwards():
    recorded = record(quartic, every=8)
    rng, x, seen = np.random.default_rng(0), np.zeros(3), []
    value = recorded(x)
    for _ in range(50):
        seen.append(proposal := x + rng.normal(size=3))
        new = recorded(proposal)
        if np.log(rng.uniform()) < new - value:
            x, value = proposal, new
    sample = recorded.sample()
    np.testing.assert_array_equal(sample.x, [np.zeros(3), *seen])
    np.testing.assert_allclose(sample.score, score(sample.x), rtol=1e-12)


def test_scipy_with_and_without_gradients():
    recorded = record(lambda x: -quartic(x), potential=True)
    scipy.optimize.minimize(recorded, X[0], jac=jax.grad(recorded), method="BFGS")
    sample = recorded.sample()
    # Each point was asked for its value, in float64, and again for its gradient, in float32.
    assert sample.length > 5
    np.testing.assert_allclose(sample.score, score(sample.x), rtol=1e-4, atol=1e-5)


def test_a_point_with_a_gradient_wins_over_the_same_without():
    calls = []

    def counted(x):
        calls.append(x)
        return quartic(x)

    recorded = record(counted)
    recorded(jnp.asarray(X[0]))
    jax.grad(recorded)(jnp.asarray(X[0]))
    calls.clear()
    assert recorded.sample().length == 1 and not calls
    assert recorded.sample().single and not recorded.sample(rescore=True).single
    assert calls


def test_duplicates_and_points_that_are_not_finite_are_left_out():
    recorded = record(lambda x: jnp.sum(jnp.sqrt(x)), every=1)
    both = jax.jit(jax.vmap(jax.value_and_grad(recorded)))
    both(jnp.array([[1.0, 1.0], [2.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 1.0], [jnp.inf, 1.0]]))
    np.testing.assert_array_equal(recorded.sample().x, [[1.0, 1.0], [2.0, 1.0]])
    assert len(recorded) == 2
    recorded(np.array([0.0, 3.0]))  # a finite value, and an infinite gradient
    assert recorded.sample().length == 2


def test_signs_make_points_distinct():
    grid = np.array(np.meshgrid(*[[-1.0, 1.0]] * 8)).reshape(8, -1).T
    for dtype in (np.float32, np.float64):
        assert len(_recorder._first_of_each(np.tile(grid, (3, 1)).astype(dtype))) == 256


def test_no_more_points_than_asked_for_evenly_from_the_run():
    recorded = record(lambda x: -(x @ x), every=1, most=100)
    walk = jax.jit(
        lambda: jax.lax.fori_loop(
            0, 9_000, lambda i, x: x + 1 + 0 * jax.grad(recorded)(x), jnp.zeros(1)
        )
    )
    walk()
    found = recorded.sample().x[:, 0]
    assert len(found) == 100 and (np.diff(found) > 0).all()
    assert np.diff(found, prepend=0.0, append=9_000.0).max() < 300
    assert sum(map(len, next(iter(recorded._inboxes.values()))._blocks)) <= 200
    recorded = record(lambda x: -(x @ x), every=1, most=10)
    jax.vmap(jax.grad(recorded))(jnp.arange(5_000.0)[:, None])
    assert len(recorded) == 10


def test_a_long_program_is_recorded_to_its_end():
    recorded = record(lambda x: -jnp.sum(x**2), every=1)

    @jax.jit
    def program(x):
        return jax.lax.fori_loop(0, 30_000, lambda _, x: x + 1 + 0 * jax.grad(recorded)(x), x)

    kept = program(jnp.zeros(1))
    assert len(recorded) == 20_000 and repr(recorded).endswith("of 30000 recorded evaluations)")
    assert float(kept[0]) == 30_000


def test_nested_vmap_is_one_message():
    recorded = record(quartic, every=1)
    jax.vmap(jax.vmap(jax.grad(recorded)))(jnp.asarray(X).reshape(2, 2, 3))
    (inbox,) = recorded._inboxes.values()
    assert len(inbox.messages) == 1 and recorded.sample().length == 4


def test_forward_mode():
    def looped(x):
        return jax.lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, quartic(x)), (0, 0.0))[1]

    with pytest.raises(ValueError, match="Reverse-mode"):
        jax.grad(record(looped))(jnp.asarray(X[0]))
    recorded = record(looped, forward=True, every=1)
    found = jax.jit(jax.jacfwd(recorded))(jnp.asarray(X[0]))
    np.testing.assert_allclose(found, score(X[:1])[0], rtol=1e-5)
    assert recorded.sample().length == 1
    recorded(X[1])
    np.testing.assert_allclose(recorded.sample().score, score(X[[0, 1]]), rtol=1e-5)


@pytest.mark.parametrize(("name", "version"), [("MAJOR", 1), ("MINOR", 99)])
def test_xla_of_another_version_is_not_read(monkeypatch, name, version):
    if _recorder._registered([], lambda: None, 8) is None:
        pytest.skip("this XLA is older than the layout that is known")
    monkeypatch.setattr(_recorder, name, version)
    assert _recorder._registered([], lambda: None, 8) is None


@pytest.mark.slow
def test_where_xla_has_another_interface_a_callback_is_used(monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("another version")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    recorded = record(quartic, every=1)
    _, steps = nuts(recorded, 5)
    assert recorded.sample().length >= steps.sum()
    np.testing.assert_allclose(recorded.sample().score, score(recorded.sample().x), rtol=1e-3)


def test_a_recorder_that_is_gone_keeps_nothing():
    recorded = record(quartic, every=1)
    program = jax.jit(jax.vmap(jax.grad(recorded))).lower(jnp.asarray(X)).compile()
    (inbox,) = recorded._inboxes.values()
    messages = inbox.messages
    del recorded, inbox
    jax.clear_caches()
    gc.collect()
    for _ in range(_recorder.BUNDLE):
        jax.block_until_ready(program(jnp.asarray(X)))
    assert len(messages) < _recorder.BUNDLE


@pytest.mark.slow
def test_the_points_train_a_control_variate():
    recorded = record(quartic)
    positions, _ = nuts(recorded, 50)
    sample = sx.from_logdensity(quartic, positions)
    training = recorded.sample(rescore=True)
    assert training.names == sample.names
    sx.Sample(sample.draws, sample.scores, training=training)


def test_mistakes_are_answered():
    with pytest.raises(TypeError, match="a function of one position"):
        inspect.unwrap(record)(X)
    with pytest.raises(ValueError, match="every is 0"):
        record(quartic, every=0)
    with pytest.raises(ValueError, match=r"most is 0\.5"):
        inspect.unwrap(record)(quartic, most=0.5)
    recorded = record(lambda x: -jnp.sum(x**2))
    with pytest.raises(ValueError, match="give the recorder to the sampler"):
        recorded.sample()
    recorded(X[0])
    with pytest.raises(ValueError, match=r"of shape \(2,\), but earlier at one of shape \(3,\)"):
        jax.jit(recorded)(jnp.ones(2))
    with pytest.raises(ValueError, match=r"has shape \(3,\): return one number"):
        record(lambda x: x)(X[0])
    with pytest.raises(TypeError, match="one process"):
        pickle.dumps(recorded)
    by_numpy = record(lambda x: -float(np.sum(x**2)))
    assert by_numpy(X[0]) < 0
    with pytest.raises(ValueError, match=r"write it with jax\.numpy"):
        by_numpy.sample()
    bad = record(lambda x: jnp.sqrt(x[0]))
    bad(np.zeros(1))
    with pytest.raises(ValueError, match="no gradient is finite at any of the 1 recorded points"):
        bad.sample()
