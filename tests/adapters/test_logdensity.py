"""from_logdensity: scores by jax.grad, for any draws."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import steinax.checks
from adapters import model_blackjax
from adapters.differences import differences
from steinax.adapters import _pytrees
from steinax.adapters._arrays import from_logdensity

RNG = np.random.default_rng(3)


def quartic(x):
    return -jnp.sum(x**2) / 2 - jnp.sum(x[:-1] ** 2 * x[1:] ** 2) / 8


def positions(chains: int = 4, draws: int = 50) -> dict[str, np.ndarray]:
    """Anywhere near the posterior of the shared model: scores are right at any point."""
    shapes = {"w": (3,), "beta": (3,), "log_tau": (), "L": (3,)}  # not in the order of the columns
    return {name: RNG.normal(size=(chains, draws, *shape)) / 2 for name, shape in shapes.items()}


def test_an_array_of_draws() -> None:
    x = RNG.normal(size=(4, 30, 3))
    sample = from_logdensity(quartic, x)
    assert sample.names == ("x[0]", "x[1]", "x[2]") and sample.variables is None
    np.testing.assert_array_equal(sample.draws, x)
    np.testing.assert_allclose(sample.scores[..., 0], -x[..., 0] * (1 + x[..., 1] ** 2 / 4))
    assert from_logdensity(quartic, x[0], names=["a", "b", "c"]).names == ("a", "b", "c")
    np.testing.assert_array_equal(from_logdensity(quartic, x[0].tolist()).draws, x[:1])


def test_a_dict_of_draws_with_sorted_columns_and_names_that_tell_transforms() -> None:
    z = positions()
    sample = from_logdensity(model_blackjax.log_density, z, constrain=model_blackjax.constrain)
    assert sample.names[:4] == ("L_free__[0]", "L_free__[1]", "L_free__[2]", "beta[0]")
    assert sample.names[6:8] == ("log_tau", "w_free__[0]")
    np.testing.assert_array_equal(sample.draws[..., 3:6], z["beta"])
    assert sample.variables is not None and sample.variables.names == ("L", "beta", "tau", "w")
    np.testing.assert_allclose(sample.variables["tau"], np.exp(z["log_tau"]), rtol=1e-15)
    np.testing.assert_allclose(sample.variables["w"].sum(axis=-1), 1.0, rtol=1e-14)
    assert sample.variables["L"].shape == (4, 50, 3, 3)


def test_scores_agree_with_finite_differences_to_1e_6() -> None:
    sample = from_logdensity(model_blackjax.log_density, positions(2, 5))
    found = np.array([differences(model_blackjax.flat_log_density, x) for x in sample.x])
    typical = np.sqrt(np.mean(found**2, axis=0))
    assert np.max(np.abs(sample.score - found) / typical) < 1e-6


def test_without_constrain_a_dict_is_asked_for_by_its_own_names() -> None:
    x = RNG.normal(size=(2, 40, 2))
    sample = from_logdensity(
        lambda z: -jnp.sum(z["theta"] ** 2) / 2,
        {"theta": x},
        dims={"theta": ["school"]},
        coords={"school": ["Choate", "Deerfield"]},
    )
    assert sx.data.integrands("theta", sample).names == ("theta[Choate]", "theta[Deerfield]")


def test_log_densities_that_the_sampler_kept_are_compared() -> None:
    """Up to a constant, and to rounding: as in a file of six digits, and as sums in float32."""
    x = RNG.normal(size=(4, 100, 2))
    kept = -(x**2).sum(axis=-1) / 2 - 1000.0

    def log_density(z: Any) -> Any:
        return -jnp.sum(z**2) / 2

    rounded = np.round(kept, 2)
    for same in (kept, rounded, kept.astype(np.float32)):
        assert from_logdensity(log_density, x, log_density=same).verified
    for other in (
        lambda z: log_density(z) + 0.1 * z[0],
        lambda z: 0.9 * log_density(z),
    ):
        with pytest.raises(ValueError, match="differs from the values that the sampler kept"):
            from_logdensity(other, x, log_density=kept)
    with pytest.raises(ValueError, match="another order"):
        from_logdensity(log_density, x, log_density=kept[::-1])
    with pytest.raises(ValueError, match=r"shape \(100, 4\)"):
        from_logdensity(log_density, x, log_density=kept.T)


def test_nested_trees_are_named_by_their_paths() -> None:
    x = RNG.normal(size=(2, 10))
    sample = from_logdensity(
        lambda z: -((z["a"]["b"] - z["c"][0]) ** 2), {"c": (x,), "a": {"b": x}}
    )
    assert sample.names == ("a.b", "c.0")


def test_float64_whatever_jax_is_set_to() -> None:
    assert not jax.config.jax_enable_x64
    x = RNG.normal(size=(2, 20, 2)).astype(np.float32)
    sample = from_logdensity(lambda x: -jnp.sum(jnp.exp(x)), x)
    np.testing.assert_allclose(sample.scores, -np.exp(x.astype(np.float64)), rtol=1e-14)
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("before", [True, False], ids=["run before", "not run before"])
@pytest.mark.parametrize("mistake", [False, True], ids=["at once", "after a mistake"])
def test_own_functions_of_numpy_arrays_work_before_and_after(before: bool, mistake: bool) -> None:
    """Jax shares its copies of NumPy arrays between float32 and float64, also those of a call that failed."""
    site, y, count = np.repeat(np.arange(3), 4), RNG.normal(size=12), np.arange(12)

    def log_density(z: Any) -> Any:
        return jnp.sum(y * z[site]) + jnp.sum(count * z[site]) - jnp.sum(z**2) / 2

    if before:
        wanted = jax.jit(log_density)(jnp.ones(3))
    x = RNG.normal(size=(2, 20, 3))
    if mistake:
        with pytest.raises(TypeError):
            from_logdensity(lambda z: log_density(z) + None, x)
    sample = from_logdensity(log_density, x)
    right = np.bincount(site, y + count) - x
    np.testing.assert_allclose(sample.scores, right, rtol=1e-13)
    found = jax.jit(log_density)(jnp.ones(3))
    assert found.dtype == jnp.float32 and (not before or found == wanted)


def test_an_integrand_shares_numpy_arrays_with_a_function_in_float32() -> None:
    columns, site = RNG.normal(size=(5, 3)), np.array([0, 2, 2, 1])

    def linear(z: Any) -> Any:
        return jnp.sum(columns @ z) + jnp.sum(z[site])

    before = jax.jit(linear)(jnp.ones(3))
    x = RNG.normal(size=(2, 50, 3))
    sample = from_logdensity(lambda z: -jnp.sum(z**2) / 2, x)
    with pytest.raises(TypeError):
        sx.estimate(lambda x: linear(x) + None, sample)
    np.testing.assert_allclose(sx.estimate(linear, sample).value, 0.0, atol=1e-13)
    assert jax.jit(linear)(jnp.ones(3)) == before


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = RNG.normal(size=(3, 37, 4))
    whole = from_logdensity(quartic, x)
    monkeypatch.setattr(_pytrees, "MEMORY", 2_000)  # a few draws at a time, and some left over
    parts = from_logdensity(quartic, x)
    np.testing.assert_allclose(parts.scores, whole.scores, rtol=1e-13)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: x**2, "return one real number"),
        (lambda x: jnp.sum(x, keepdims=True), "return one real number"),
        (jnp.argmax, "return one real number"),
        (lambda x: None, "return one real number"),
        (lambda x: np.sum(np.exp(x)), "jax.numpy"),
        (lambda x: -jnp.sum(x) if x[0] > 0 else jnp.sum(x), "jnp.where for if"),
        (lambda x: jnp.sum(jnp.log(x)), "not finite"),
        (lambda x: jnp.sum(jnp.sqrt(jnp.abs(x) * 0)), "its gradient is not finite"),
    ],
)
def test_densities_that_cannot_be_used_are_refused_with_what_to_do(fn, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_logdensity(fn, RNG.normal(size=(2, 10, 3)))


def test_draws_that_cannot_be_used_are_refused() -> None:
    x = RNG.normal(size=(2, 10))
    with pytest.raises(ValueError, match="chain, draw"):
        from_logdensity(lambda z: -(z["a"] ** 2) - z["b"] ** 2, {"a": x, "b": x[:1]})
    with pytest.raises(ValueError, match=r"array\[None\]"):
        from_logdensity(lambda z: -(z["a"] ** 2), {"a": x[0]})
    with pytest.raises(ValueError, match="chain, draw, dim"):
        from_logdensity(quartic, x[0])
    with pytest.raises(ValueError, match="a dict of named quantities"):
        from_logdensity(quartic, x, constrain=lambda x: x)
    with pytest.raises(ValueError, match="`constrain` is not made of jax"):
        from_logdensity(quartic, x, constrain=lambda x: {"e": np.exp(x)})


def test_keeps_the_contract_of_adapters() -> None:
    z = positions()
    sx.checks.check_adapter(
        lambda: from_logdensity(model_blackjax.log_density, z),
        chains=4,
        length=50,
        dim=10,
        log_density=model_blackjax.flat_log_density,
    )


@pytest.mark.slow
@pytest.mark.alone
def test_4000_draws_are_scored_in_a_second_after_compilation() -> None:
    z = {name: value.reshape(4000, *value.shape[2:]) for name, value in positions(4, 1000).items()}
    with jax.enable_x64(True):
        run = _pytrees.compiled_over_draws(jax.value_and_grad(model_blackjax.log_density), z)
        start = time.perf_counter()
        jax.block_until_ready(run(z))
        assert time.perf_counter() - start < 1.0


def test_fresh_points_have_the_scores_and_quantities_of_the_draws() -> None:
    z = positions(2, 100)
    given = {"constrain": model_blackjax.constrain}
    bare = from_logdensity(model_blackjax.log_density, z, **given)
    sample = from_logdensity(model_blackjax.log_density, z, **given, more=60)
    assert bare.tried == () and sample.training == ()
    np.testing.assert_array_equal(sample.draws, bare.draws)
    (fresh,) = sample.tried
    assert fresh.names == sample.names and fresh.draws.shape == (1, 60, sample.dim)
    found = np.array([differences(model_blackjax.flat_log_density, x) for x in fresh.x[:5]])
    np.testing.assert_allclose(fresh.score[:5], found, rtol=1e-5, atol=1e-5 * np.abs(found).max())
    assert fresh.variables is not None
    np.testing.assert_allclose(fresh.variables["tau"], np.exp(fresh.draws[..., 6]), rtol=1e-14)
    assert not np.isin(fresh.x[:, 0], sample.x[:, 0]).any()


def test_a_negative_number_of_fresh_points_is_refused() -> None:
    with pytest.raises(ValueError, match="give the number of fresh points"):
        from_logdensity(quartic, RNG.normal(size=(4, 30, 3)), more=-1)


def test_fresh_points_without_a_finite_score_are_left_out() -> None:
    def half(x):  # known on one side only, where all draws are
        return jnp.where(x[0] > 0, -jnp.sum(x**2) / 2, jnp.nan)

    x = np.abs(RNG.normal(size=(4, 50, 2)))
    (fresh,) = from_logdensity(half, x, more=200).tried
    assert 20 < fresh.size < 200 and (fresh.x[:, 0] > 0).all()


def test_the_audit_says_what_nothing_compared() -> None:
    """A likelihood without its prior is another density, and its own values agree with it."""
    x = RNG.normal(size=(4, 250, 2))

    def log_density(z: Any) -> Any:
        return -jnp.sum(z**2) / 2

    assumed = from_logdensity(log_density, x)
    for sample in (assumed, assumed[:, :200], assumed.extended(assumed[:, :100])):
        text = repr(sx.audit(sample))
        assert "agree with the given log density" in text and "that the sampler kept" in text
    kept = from_logdensity(log_density, x, log_density=-(x**2).sum(axis=-1) / 2)
    assert repr(sx.audit(kept)).endswith("the scores agree with the log density")
