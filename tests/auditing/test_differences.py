"""audit(log_density=...): scores against finite differences of a log density written in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.auditing import central_differences

RNG = np.random.default_rng(3)
TIMES = 1.5 * RNG.weibull(1.3, size=40)
NAMES = ["log_shape", "log_scale"]


def log_density(z: np.ndarray) -> float:
    """Weibull times, with gamma priors of shape and scale; z are their logs, so with the log-Jacobian."""
    shape, scale = np.exp(z)
    t = TIMES / scale
    likelihood = np.sum(np.log(shape / scale) + (shape - 1.0) * np.log(t) - t**shape)
    return likelihood + _prior(shape, scale) + z.sum()


def _prior(shape: float, scale: float) -> float:
    return np.log(shape) - shape + np.log(scale) - scale


def score(z: np.ndarray, jacobian: float = 1.0, prior: float = 1.0) -> np.ndarray:
    shape, scale = np.exp(z)
    t = TIMES / scale
    log_t, power = np.log(t), t**shape
    of_shape = np.sum(1.0 + shape * log_t - shape * power * log_t)
    of_scale = np.sum(-shape + shape * power)
    priors = prior * np.array([1.0 - shape, 1.0 - scale])
    return np.array([of_shape, of_scale]) + priors + jacobian


def _metropolis(chains: int, length: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    found = np.empty((chains, length, 2))
    for chain in found:
        z, now = np.array([0.2, 0.3]), log_density(np.array([0.2, 0.3]))
        for i in range(length + 100):
            step = z + 0.2 * rng.normal(size=2)
            if np.log(rng.uniform()) < (there := log_density(step)) - now:
                z, now = step, there
            if i >= 100:
                chain[i - 100] = z
    return found


DRAWS = _metropolis(4, 250)


def _scores(**options: float) -> np.ndarray:
    return np.apply_along_axis(lambda z: score(z, **options), 2, DRAWS)


SCORES = _scores()
LATE = np.concatenate([SCORES[:, :1], SCORES[:, :-1]], axis=1)
MISTAKES = {
    "jacobian": (DRAWS, _scores(jacobian=0.0), "log-Jacobian of a log transformation is left out"),
    "differences": (DRAWS, _scores(prior=0.0), "a term left out, such as a prior"),
    "sign": (DRAWS, -SCORES, "give -scores"),
    "tempered": (DRAWS, 0.97 * SCORES, "All scores are 0.97 times"),
    "lag": (DRAWS, LATE, "one draw late"),
    "order": (DRAWS, SCORES[..., ::-1], r"scores\[..., \[1, 0\]\] fit"),
    "constrained": (np.exp(DRAWS), SCORES, "The draws of log_shape, log_scale are constrained"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_named_with_its_parameter_and_its_draw(kind: str) -> None:
    draws, scores, words = MISTAKES[kind]
    sample = sx.Sample(draws, scores, NAMES)
    report = sx.audit(sample, log_density=log_density)
    assert not report.passed and not report.verified and not sample.verified
    assert report.problems[0].kind == kind
    assert report.problems[0].columns == tuple(NAMES)
    with pytest.raises(sx.AuditError, match=rf"(?s)at draw \d+ of chain \d.*of log_s.*{words}"):
        report.raise_if_failed()


def test_draws_beside_a_density_of_the_constrained_parameters() -> None:
    def of_constrained(theta: np.ndarray) -> float:
        z = np.log(theta)
        return log_density(z) - z.sum()

    report = sx.audit(sx.Sample(np.exp(DRAWS), SCORES, NAMES), log_density=of_constrained)
    assert report.problems[0].kind == "constrained"


@pytest.mark.parametrize("column", [0, 1])
def test_a_prior_left_out_of_one_column_is_a_straight_line(column: int) -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 2))
    scores = -x.copy()
    scores[..., column] *= 0.95
    report = sx.audit(sx.Sample(x, scores), log_density=lambda x: -0.5 * x @ x)
    assert (report.problems[0].kind, report.problems[0].columns) == ("term", (f"x[{column}]",))
    assert "such as a normal prior" in report.problems[0].message


def test_right_scores_are_verified_and_the_sample_remembers() -> None:
    sample = sx.Sample(DRAWS, SCORES, NAMES)
    assert not sx.audit(sample).verified
    report = sx.audit(sample, log_density=log_density)
    assert report.passed and report.verified and sample.verified and sx.audit(sample).verified
    assert "would not notice" not in repr(report)


def test_few_draws_are_compared_too() -> None:
    for scores, agree in ((SCORES, True), (_scores(jacobian=0.0), False)):
        sample = sx.Sample(DRAWS[:1, :6], scores[:1, :6])
        assert sx.audit(sample, log_density=log_density).passed is agree
        assert sample.verified is agree


def test_a_function_of_many_draws() -> None:
    x = np.random.default_rng(0).normal(size=(4, 250, 3))
    sample = sx.Sample(x, -x)
    assert sx.audit(sample, log_density=lambda x: -0.5 * (x**2).sum(axis=1)).verified
    with pytest.raises(ValueError, match=r"must take one draw.*or take many, \(n, dim\)"):
        sx.audit(sample, log_density=lambda x: -0.5 * x**2)
    known = {row.tobytes() for row in sample.x}
    with pytest.raises(ValueError, match="not finite around the draw"):
        sx.audit(sample, log_density=lambda x: 0.0 if x.tobytes() in known else np.nan)


def test_a_function_of_jax_is_evaluated_in_float64() -> None:
    import jax
    import jax.numpy as jnp

    x = np.random.default_rng(0).normal(size=(2, 100, 3))
    sample = sx.Sample(x, -(x**3))
    report = sx.audit(sample, log_density=lambda x: -0.25 * jnp.sum(x**4) + 1e4)
    assert report.verified and not jax.config.jax_enable_x64


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_no_false_alarm_for_a_far_or_narrow_or_noisy_density(scale: float, shift: float) -> None:
    """A log density of size 1e5 and of any scale; one whose values are noisy is rough and no alarm."""
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=(4, 250, 2))

    def density(x: np.ndarray) -> float:
        return float(-np.sum((x / scale) ** 4) / 4) + shift

    exact = sx.Sample(x, -((x / scale) ** 3) / scale)
    differences = sx.auditing._differences.differences
    assert differences(exact, density) is None
    for noise in (1e-7, 1e-5, 1e-3):
        for _ in range(10):
            noisy = differences(exact, lambda x, size=noise: density(x) + size * rng.normal())
            assert noisy is not None
            assert noisy.kind == "rough" and not noisy.fatal


def test_many_dimensions_are_compared_along_random_directions() -> None:
    x = np.random.default_rng(0).normal(size=(4, 100, 200))
    wrong = -x.copy()
    wrong[..., 150] *= 1.3
    right, off = sx.Sample(x, -x), sx.Sample(x, wrong)
    assert sx.audit(right, log_density=lambda x: -0.5 * x @ x).verified
    message = sx.audit(off, log_density=lambda x: -0.5 * x @ x).problems[0].message
    assert "along a random direction" in message


def test_errors_of_differences_are_not_underestimated() -> None:
    """Of a funnel: steep in one direction where the other is low."""

    def funnel(z: np.ndarray) -> float:
        return -0.5 * z[0] ** 2 / 9 - 0.5 * z[1] ** 2 * np.exp(-z[0]) - 0.5 * z[0]

    z0 = np.random.default_rng(0).normal(size=100) * 3
    points = np.stack([z0, np.exp(0.5 * z0) * np.random.default_rng(1).normal(size=100)], axis=1)
    found, error = central_differences(funnel, points, np.diag(points.std(axis=0)))
    z0, z1 = points.T
    exact = np.stack([-z0 / 9 + 0.5 * z1**2 * np.exp(-z0) - 0.5, -z1 * np.exp(-z0)], axis=1)
    assert (np.abs(found - exact * points.std(axis=0)) <= 10 * error + 1e-12).all()
    assert (error < 1e-5 * (1 + np.abs(found))).all()


def test_a_function_of_jax_is_compiled() -> None:
    """An ODE solver would be slow step by step; functions that need values still run."""
    calls = []

    def density(x: jax.Array) -> jax.Array:
        calls.append(isinstance(x, jax.core.Tracer))
        return -0.5 * jnp.sum(x**2)

    def branches(x: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(x**2) if x[0] < 100 else jnp.zeros(())

    draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    assert sx.audit(sx.Sample(draws, -draws), log_density=density).verified
    assert sum(calls) == 1 and len(calls) < 10, "traced once, and called a few times before"
    assert sx.audit(sx.Sample(draws, -draws), log_density=branches).verified
