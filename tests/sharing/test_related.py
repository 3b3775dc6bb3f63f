"""Several tasks fitted together: known answers, mean zero, honest error bars, refusals."""

import numpy as np
import pytest

import steinax as sx
from steinax.sharing import fit_related

pytestmark = pytest.mark.slow

KERNEL = sx.KernelTranslates(sx.kernels.SquaredExponential(0.7))


def gaussian_tasks(count: int, n: int, seed: int) -> tuple[list[sx.Sample], list[dict], np.ndarray]:
    """Shifted Gaussians and sinusoids that differ a little, with their expectations."""
    rng = np.random.default_rng(seed)
    mean, height = 0.5 * rng.normal(size=count), 1 + 0.3 * rng.normal(size=count)
    phase = 0.3 * rng.normal(size=count)
    x = mean[:, None] + rng.normal(size=(count, n))
    f = height[:, None] * np.sin(2 * x + phase[:, None])
    samples = [
        sx.Sample(a[None, :, None], m - a[None, :, None]) for a, m in zip(x, mean, strict=True)
    ]
    truth = height * np.exp(-2) * np.sin(2 * mean + phase)
    return samples, [{"f": one[None]} for one in f], truth


def test_identical_tasks_with_ones_are_the_pooled_fit() -> None:
    x = np.random.default_rng(0).normal(size=(1, 30, 1))
    sample, f = sx.Sample(x, -x), np.sin(2 * x[..., 0])
    both = sx.Sample(np.concatenate([x, x], 1), -np.concatenate([x, x], 1))
    together = fit_related({"f": f}, [sample, sample], np.ones((2, 2)), KERNEL, noise=1e-2)
    size = float(together.sizes[0, 0])
    penalty = sx.NativeNorm(1e-2 * size / both.size)
    alone = sx.fit({"f": np.concatenate([f, f], 1)}, both, KERNEL, penalty=penalty)
    new = np.linspace(-2, 2, 9)[:, None]
    for t in (0, 1):
        assert np.allclose(together(t, new, -new), alone(new, -new), atol=1e-8)
        assert np.allclose(together.intercept[t], alone.intercept, atol=1e-8)


def test_the_identity_gives_one_fit_for_each() -> None:
    x = np.random.default_rng(1).normal(size=(1, 20, 1))
    sample, values = sx.Sample(x, -x), [np.sin(2 * x[..., 0]), x[..., 0] ** 3, np.cos(x[..., 0])]
    f = [{"f": one} for one in values]
    together = fit_related(f, [sample] * 3, np.eye(3), KERNEL, noise=1e-2)
    # coordinates of three times the same draws are a little narrower than those of one
    ratio = np.sqrt(3 * (20 - 1) / (3 * 20 - 1))
    kernel = sx.KernelTranslates(sx.kernels.SquaredExponential(0.7 * ratio))
    penalty = sx.NativeNorm(1e-2 * float(together.sizes[0, 0]) / ratio**2 / 20)
    new = np.linspace(-2, 2, 9)[:, None]
    for t in range(3):
        alone = sx.fit(f[t], sample, kernel, penalty=penalty)
        assert np.allclose(together(t, new, -new), alone(new, -new), atol=1e-8)
        assert np.allclose(together.intercept[t], alone.intercept, atol=1e-8)


def test_every_control_variate_has_mean_zero_under_its_own_target() -> None:
    samples, f, _ = gaussian_tasks(3, 20, 3)
    relation = 0.8 * np.ones((3, 3)) + 0.2 * np.eye(3)
    g = fit_related(f, samples, relation, sx.Polynomial(2) + KERNEL, noise=1e-3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    for t, sample in enumerate(samples):
        mean = float(np.mean(sample.x + sample.score))  # x + score is the mean of the target
        at = g(t, (mean + nodes)[:, None], -nodes[:, None])[:, 0]
        size = np.sqrt(weights @ at**2 / weights.sum())
        assert abs(weights @ at / weights.sum()) < 1e-9 * size


def test_left_out_folds_are_those_of_refitting() -> None:
    import jax.numpy as jnp

    from steinax._precision import precision
    from steinax.sharing._coupling import coupling_of, related
    from steinax.sharing._crossfit import grams_of, left_out, terms_of
    from steinax.sharing._likelihood import system
    from steinax.sharing._related import default_family
    from steinax.sharing._tasks import tasks_of

    samples, wanted, _ = gaussian_tasks(3, 16, 4)
    tasks = tasks_of(wanted, samples)
    with precision(np.float64):
        order = np.argsort(np.arange(48) % 16, kind="stable")  # rows of a fold side by side
        grams, _ = grams_of(
            terms_of(default_family(), tasks.points(True)[0]), *tasks.points(True), tasks.task
        )
        grams, task, f = (
            grams[:, order][:, :, order],
            jnp.asarray(tasks.task[order]),
            tasks.f[order],
        )
        coupling = coupling_of(related(3, 2), len(grams))
        rest, moved = left_out(coupling, grams, task, f, 3, ((0, 6), (6, 12)))
        seen = np.r_[0:6, 12:48]
        beta, alpha = system(coupling, grams[:, seen][:, :, seen], task[seen], 3).coefficients(
            f[seen]
        )
        g = coupling.kernel(grams[:, 6:12][:, :, seen], task[6:12], task[seen]) @ alpha
        assert np.allclose(rest[6:12], f[6:12] - g, atol=1e-8)
        assert np.allclose(moved[1], beta, atol=1e-8)


def test_the_gradient_is_that_of_the_likelihood() -> None:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from steinax._precision import precision
    from steinax.sharing._coupling import coupling_of, related
    from steinax.sharing._crossfit import grams_of, terms_of
    from steinax.sharing._likelihood import objective
    from steinax.sharing._related import default_family
    from steinax.sharing._tasks import tasks_of

    samples, wanted, _ = gaussian_tasks(3, 12, 5)
    tasks = tasks_of(wanted, samples)
    with precision(np.float64):
        grams, _ = grams_of(
            terms_of(default_family(), tasks.points(True)[0]), *tasks.points(True), tasks.task
        )
        task, f = jnp.asarray(tasks.task), jnp.asarray(tasks.f)
        start = jax.tree.map(jnp.asarray, coupling_of(related(3, 2), len(grams)))
        flat, back = ravel_pytree(start)
        slope = ravel_pytree(objective(start, grams, task, f, 3)[1])[0]
        for i in range(len(flat)):
            step = jnp.zeros(len(flat)).at[i].set(1e-5)
            up, down = (objective(back(flat + s * step), grams, task, f, 3)[0] for s in (1, -1))
            assert np.isclose((up - down) / 2e-5, slope[i], rtol=1e-4, atol=1e-4)


def test_related_tasks_gain_from_each_other() -> None:
    """One seed, fixed: it cannot fail by chance, and how often others would was not measured."""
    samples, f, truth = gaussian_tasks(12, 16, 6)
    found = sx.estimate_related(f, samples, audit="off")
    error = np.abs(found.value[:, 0] - truth)
    plain = np.abs(found.plain_value[:, 0] - truth)
    assert np.median(error) < 0.1 * np.median(plain)
    assert (error < 6 * found.mcse[:, 0]).all()
    assert "related" in found[0].chosen[0]
    assert "tasks" in repr(found)


def test_unrelated_noise_falls_back_to_the_plain_average() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 1, 20, 2))
    samples = [sx.Sample(one, -one) for one in x]
    f = [{"f": rng.normal(size=(1, 20))} for _ in x]
    found = sx.estimate_related(f, samples, audit="off")
    assert (found.mcse <= found.plain_mcse * (1 + 1e-12)).all()
    plain = np.array([row[0] == "plain Monte Carlo" for row in found.chosen])
    assert plain.any()
    assert np.array_equal(found.value[plain], found.plain_value[plain])


def test_what_cannot_be_related_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(1, 20, 1))
    sample, wide = sx.Sample(x, -x), sx.Sample(np.tile(x, 2) * [1, 2], -np.tile(x, 2))
    for wrong, message in (
        (lambda: sx.estimate_related("x", [sample]), "two or more"),
        (lambda: sx.estimate_related("x", [sample, wide]), "same dimension"),
        (lambda: sx.estimate_related([{"a": x[..., 0]}], [sample, sample]), "a list with"),
        (lambda: sx.estimate_related("x", [sample] * 2, relation=np.ones(2)), "symmetric matrix"),
        (lambda: sx.estimate_related("x", [sample] * 2, relation=1 - np.eye(2)), "semi-definite"),
        (lambda: sx.estimate_related("x", [sample] * 2, rank=0), "1 or more"),
        (lambda: sx.estimate_related("x", [sample] * 300), "estimate_many"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="linear"):
        sx.estimate_related("x", [sample] * 2, sx.Network())
    with pytest.raises(TypeError, match="list of Sample"):
        sx.estimate_related("x", [x, x])
