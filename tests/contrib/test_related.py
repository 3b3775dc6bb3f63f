"""Several tasks fitted together: known answers, mean zero, honest error bars, refusals."""

import numpy as np
import pytest

import steinax as sx
from steinax.contrib import estimate_related, fit_related
from steinax.contrib.related import Likelihood, default_family, leave_out, scaled_kernels, system_of
from steinax.contrib.tasks import Tasks, tasks_of

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
    together = fit_related({"f": f}, [sample, sample], np.ones((2, 2)), KERNEL, penalty=1e-2)
    size = float(together.sizes[0])
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
    together = fit_related(f, [sample] * 3, np.eye(3), KERNEL, penalty=1e-2)
    # coordinates of three times the same draws are a little narrower than those of one
    ratio = np.sqrt(3 * (20 - 1) / (3 * 20 - 1))
    kernel = sx.KernelTranslates(sx.kernels.SquaredExponential(0.7 * ratio))
    penalty = sx.NativeNorm(1e-2 * float(together.sizes[0]) / ratio**2 / 20)
    new = np.linspace(-2, 2, 9)[:, None]
    for t in range(3):
        alone = sx.fit(f[t], sample, kernel, penalty=penalty)
        assert np.allclose(together(t, new, -new), alone(new, -new), atol=1e-8)
        assert np.allclose(together.intercept[t], alone.intercept, atol=1e-8)


def test_every_control_variate_has_mean_zero_under_its_own_target() -> None:
    samples, f, _ = gaussian_tasks(3, 20, 3)
    relation = 0.8 * np.ones((3, 3)) + 0.2 * np.eye(3)
    g = fit_related(f, samples, relation, sx.Polynomial(2) + KERNEL, penalty=1e-3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    for t, sample in enumerate(samples):
        mean = float(np.mean(sample.x + sample.score))  # x + score is the mean of the target
        at = g(t, (mean + nodes)[:, None], -nodes[:, None])[:, 0]
        size = np.sqrt(weights @ at**2 / weights.sum())
        assert abs(weights @ at / weights.sum()) < 1e-9 * size


def _likelihood(n: int, seed: int) -> tuple[Tasks, Likelihood]:
    samples, wanted, _ = gaussian_tasks(3, n, seed)
    tasks = tasks_of(wanted, samples)
    grams = scaled_kernels(tasks, default_family(), True)
    return tasks, Likelihood(grams, tasks.task, tasks.f, 3, 2)


def test_left_out_folds_are_those_of_refitting() -> None:
    tasks, likelihood = _likelihood(16, 4)
    coupling, task, f = likelihood.coupling(likelihood.start()), tasks.task, tasks.f
    matrix, blocks = coupling.kernel(likelihood.grams, task, task), tasks.blocks()
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(48))
    for held, (residual, moved) in zip(blocks, leave_out(matrix, task, 3, f, blocks), strict=True):
        seen = np.setdiff1d(np.arange(48), held)
        some = likelihood.grams[:, seen][:, :, seen]
        kernel = coupling.kernel(some, task[seen], task[seen])
        intercepts, alpha = system_of(kernel, task[seen], 3).coefficients(f[seen])
        there = likelihood.grams[:, held][:, :, seen]
        g = coupling.kernel(there, task[held], task[seen]) @ alpha
        assert np.allclose(residual, f[held] - g, atol=1e-8)
        assert np.allclose(moved, intercepts, atol=1e-8)


@pytest.mark.parametrize("given", [None, np.eye(3) + 1], ids=["learned", "given"])
def test_the_gradient_is_that_of_the_likelihood(given: np.ndarray | None) -> None:
    likelihood = _likelihood(12, 5)[1]._replace(given=given)
    start = likelihood.start() + 0.1 * np.random.default_rng(0).normal(size=len(likelihood.start()))
    _, slope = likelihood(start)
    for i, step in enumerate(1e-5 * np.eye(len(start))):
        change = (likelihood(start + step)[0] - likelihood(start - step)[0]) / 2e-5
        assert np.isclose(change, slope[i], rtol=1e-5, atol=1e-5)


def test_a_line_search_stays_where_the_kernel_can_be_factorised() -> None:
    """Tasks on which a first step of L-BFGS asks for variances beyond the largest number."""
    rng = np.random.default_rng(0)
    mean, phase = 0.5 * rng.normal(size=8), 0.3 * rng.normal(size=8)
    x = [m + rng.normal(size=(1, 20, 1)) for m in mean]
    samples = [sx.Sample(one, m - one) for one, m in zip(x, mean, strict=True)]
    f = [{"f": np.sin(2 * one[..., 0] + p)} for one, p in zip(x, phase, strict=True)]
    assert np.isfinite(estimate_related(f, samples, audit="off").mcse).all()


def test_related_tasks_gain_from_each_other() -> None:
    """One seed, fixed: it cannot fail by chance, and how often others would was not measured."""
    samples, f, truth = gaussian_tasks(12, 16, 6)
    found = estimate_related(f, samples, audit="off")
    error = np.abs(found.value[:, 0] - truth)
    plain = np.abs(found.plain_value[:, 0] - truth)
    assert np.median(error) < 0.1 * np.median(plain)
    assert (error < 6 * found.mcse[:, 0]).all()
    assert "related" in found[0].chosen[0]
    assert "tasks" in repr(found)
    for cited in (sx.citations(found), sx.citations(found[0])):
        assert {"sun2021vector", "oates2017control"} <= {one.key for one in cited.references}


def test_unrelated_noise_falls_back_to_the_plain_average() -> None:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4, 1, 20, 2))
    samples = [sx.Sample(one, -one) for one in x]
    f = [{"f": rng.normal(size=(1, 20))} for _ in x]
    found = estimate_related(f, samples, audit="off")
    assert (found.mcse <= found.plain_mcse * (1 + 1e-12)).all()
    plain = np.array([row[0] == "plain Monte Carlo" for row in found.chosen])
    assert plain.any()
    assert np.array_equal(found.value[plain], found.plain_value[plain])


def test_what_cannot_be_related_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(1, 20, 1))
    sample, wide = sx.Sample(x, -x), sx.Sample(np.tile(x, 2) * [1, 2], -np.tile(x, 2))
    for wrong, message in (
        (lambda: estimate_related("x", [sample]), "two or more"),
        (lambda: estimate_related("x", [sample, wide]), "same dimension"),
        (lambda: estimate_related([{"a": x[..., 0]}], [sample, sample]), "a list with"),
        (lambda: estimate_related("x", [sample] * 2, relation=np.ones(2)), "symmetric matrix"),
        (lambda: estimate_related("x", [sample] * 2, relation=1 - np.eye(2)), "semi-definite"),
        (lambda: estimate_related("x", [sample] * 2, rank=0), "1 or more"),
        (lambda: estimate_related("x", [sample] * 300), "estimate_many"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    with pytest.raises(TypeError, match="linear"):
        estimate_related("x", [sample] * 2, sx.Network())
    with pytest.raises(TypeError, match="list of Sample"):
        estimate_related("x", [x, x])
