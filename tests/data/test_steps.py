"""Where functions of draws jump is found, and not where it cannot be."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.data import Integrands, exceeding, integrands, links

X = np.random.default_rng(0).normal(size=(4, 60, 5)) * [1.0, 2.0, 0.5, 1.0, 0.7] + 1.0
NAMES = ["mu", "theta[0]", "theta[1]", "theta[2]", "u"]
SAMPLE = sx.Sample(X, -X, NAMES)
W = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def steps(f, sample: sx.Sample = SAMPLE) -> tuple:
    return integrands({"f": f}, sample, jumps=True).steps


@pytest.mark.parametrize(
    ("f", "along", "threshold"),
    [
        (lambda mu: mu > 0.3, [1, 0, 0, 0, 0], 0.3),
        (lambda mu: mu >= 0.3, [1, 0, 0, 0, 0], 0.3),
        (lambda mu: mu < 0.3, [1, 0, 0, 0, 0], 0.3),
        (lambda x: x[4] > 1, [0, 0, 0, 0, 1], 1.0),
        (lambda theta: theta[0] > theta[2], [0, 1, 0, -1, 0], 0.0),
        (lambda mu, u: mu + 2 * u < 3, [-1, 0, 0, 0, -2], -3.0),
        (lambda theta: W[0] @ theta > 0.5, [0, 1, 2, -1, 0], 0.5),
        (lambda mu: np.mean(np.array([mu, 1.0])) > 1.1, [1, 0, 0, 0, 0], 1.2),
        (lambda mu: jnp.exp(3 * mu) > 20, [1, 0, 0, 0, 0], np.log(20) / 3),
    ],
)
def test_a_jump_is_found(f, along: list[float], threshold: float) -> None:
    ((step,),) = steps(f)
    unit = np.linalg.norm(along)
    sign = np.sign(step.along[0] @ along)
    np.testing.assert_allclose(sign * step.along[0], np.array(along) / unit, atol=1e-7)
    assert sign * step.threshold[0] == pytest.approx(threshold / unit, abs=1e-7)
    assert abs(step.size) == 1.0


@pytest.mark.parametrize(
    ("f", "count"),
    [
        (lambda theta: 3.0 - 5.0 * (W @ theta > 1.0), [1]),
        (lambda mu: abs(mu - 1) > 1, [1, 1]),
        (lambda mu: (mu > 0.5) & (mu < 1.5), [1, 1]),
        (lambda mu: (abs(mu - 1) > 1) | (abs(mu - 1) < 0.5), [1] * 4),
        (lambda theta: theta.argmax() == 0, [2]),
        (lambda mu, u: (mu > 1) & (u > 1), [2]),
        (lambda mu, u: (mu > 1) | (u < 1.2), [2]),
        (lambda mu, u: (mu > 1) ^ (u > 1), [1, 1, 2]),
        (lambda mu, theta: (mu + theta[0] > 1) & (theta[1] - 2 * theta[2] > -1), [2]),
        (lambda x: 7.0 * jnp.where((x[0] > 1) & (x[1] > x[2]), 1, 2), [2]),
    ],
)
def test_the_steps_are_the_integrand(f, count: list[int]) -> None:
    found = integrands({"f": f}, SAMPLE, jumps=True)
    for i, several in enumerate(found.steps):
        assert [len(step.threshold) for step in several] == count
        jumps = sum(
            step.size * (SAMPLE.x @ step.along.T > step.threshold).all(axis=1) for step in several
        )
        np.testing.assert_allclose(np.ptp(found.rows[:, i] - jumps), 0, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda mu: mu,
        lambda mu: 1.0 * (mu > 0) + (mu > 1),
        lambda mu, u, theta: (mu > 1) & (u > 1) & (theta[0] > 1),
        lambda theta: theta[0] * theta[1] > 1,
        lambda x: x.argmax() == 0,
        lambda mu: mu > 100,
    ],
)
def test_what_is_no_threshold_on_one_or_two_combinations_has_no_step(f) -> None:
    assert steps(f) == ((),)


def test_a_function_that_fails_between_draws_has_no_step() -> None:
    known = {float(value) for value in SAMPLE.x[:, 0]}

    def f(mu):
        if float(mu) not in known:
            raise RuntimeError("not a draw")
        return mu > 0.3

    assert steps(f) == ((),)


def test_arrays_and_names_have_no_steps() -> None:
    assert integrands({"a": X[..., 0] > 0, "mu": "mu"}, SAMPLE, jumps=True).steps == ()


def test_steps_stay_with_their_columns() -> None:
    first = integrands({"a": "mu", "b": lambda mu: mu > 0.3}, SAMPLE, jumps=True)
    second = integrands({"c": "u"}, SAMPLE)
    both = Integrands.joined([second, first])
    assert [bool(several) for several in both.steps] == [False, False, True]
    assert both.mapped(lambda v: v, both.names).steps == ()


def test_parameters_with_constraints_are_functions_of_their_coordinates() -> None:
    u = X[..., 4]
    values = np.stack(
        [
            2 * np.exp(u) + 3,
            5 - np.exp(u),
            4 / (1 + np.exp(-u)) - 1,
            X[..., 1] - 2 * X[..., 0] + 7,
            u**3,
            np.ones_like(u),
        ],
        axis=-1,
    )
    positive, bounded, interval, contrast, cube, constant = links(values, SAMPLE)
    assert cube is constant is None
    for link, value, c in (
        (positive, 2 * np.exp(0.3) + 3, 0.3),
        (bounded, 5 - np.exp(0.3), -0.3),
        (interval, 4 / (1 + np.exp(-0.3)) - 1, 0.3),
    ):
        assert link is not None
        assert link.along.tolist() == [0, 0, 0, 0, np.sign(c)]
        assert link.combination(value) == pytest.approx(c)
        assert link.value(c) == pytest.approx(value)
        step = 1e-6
        slope = (link.value(c + step) - link.value(c - step)) / (2 * step)
        assert link.derivative(c) == pytest.approx(slope, rel=1e-6)
    assert contrast is not None
    np.testing.assert_allclose(contrast.along, [-2, 1, 0, 0, 0], atol=1e-9)
    assert contrast.combination(7.5) == pytest.approx(0.5)
    assert positive is not None and not np.isfinite(positive.combination(2.0))


def test_a_threshold_on_a_variable_of_the_model() -> None:
    import xarray

    tau = xarray.Dataset({"tau": (("chain", "draw"), np.exp(X[..., 4]))})
    sample = sx.Sample(X, -X, NAMES, variables=sx.data.Variables(tau))
    ((step,),) = steps(lambda tau: tau > 2, sample)
    assert step.along.tolist() == [[0, 0, 0, 0, 1]]
    assert step.threshold == pytest.approx(np.log(2))


class TestCurved:
    """Events that smooth functions exceed a threshold."""

    def curve(self, f, threshold: float, sample: sx.Sample = SAMPLE) -> tuple:
        ((step,),) = integrands(exceeding({"f": f}, threshold), sample, jumps=True).steps
        return step.along, step.threshold[0]

    def test_fields_and_divergences_are_derivatives(self) -> None:
        """Against central differences, with relative errors of about 1e-9."""
        curve, threshold = self.curve(lambda mu, theta: mu * theta[1] + jnp.sin(theta[0]), -1.0)
        assert threshold == -1.0
        x, matrix, step = SAMPLE.x[:20], np.diag([1.0, 2.0, 3.0, 1.0, 1.0]), 1e-5
        value, field, steep, trace, bend = curve(x, matrix)
        np.testing.assert_allclose(value, x[:, 0] * x[:, 2] + np.sin(x[:, 1]), rtol=1e-12)
        zero = np.zeros(20)
        gradient = np.stack([x[:, 2], np.cos(x[:, 1]), x[:, 0], zero, zero], axis=1)
        np.testing.assert_allclose(field, gradient @ matrix, rtol=1e-12)
        np.testing.assert_allclose(steep, (gradient * field).sum(axis=1), rtol=1e-12)
        ends = [curve(x + s * step * e, matrix)[1] for e in np.eye(5) for s in (1, -1)]
        rates = [
            (a - b)[:, i] / (2 * step)
            for i, (a, b) in enumerate(zip(*[iter(ends)] * 2, strict=True))
        ]
        np.testing.assert_allclose(trace, np.sum(rates, axis=0), rtol=1e-6, atol=1e-8)
        along = [curve(x + s * step * field, matrix)[1] for s in (1, -1)]
        rate = (along[0] - along[1]) / (2 * step) @ np.linalg.inv(matrix)
        np.testing.assert_allclose(bend, (rate * field).sum(axis=1), rtol=1e-6, atol=1e-8)

    def test_positive_functions_are_seen_on_the_log_scale(self) -> None:
        curve, threshold = self.curve(lambda x: (x**2).sum(), 3.0)
        assert threshold == pytest.approx(np.log(3.0))
        np.testing.assert_allclose(
            curve(SAMPLE.x, np.eye(5))[0], np.log((SAMPLE.x**2).sum(axis=1)), rtol=1e-12
        )

    def test_of_variables_with_constraints(self) -> None:
        import xarray

        tau = xarray.Dataset({"tau": (("chain", "draw"), np.exp(X[..., 4]))})
        sample = sx.Sample(X, -X, NAMES, variables=sx.data.Variables(tau))
        curve, _ = self.curve(lambda tau, mu: mu / tau, -1.0, sample)
        expected = X[..., 0].ravel() / np.exp(X[..., 4]).ravel()
        value, field, *_ = curve(sample.x, np.eye(5))
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        assert np.all(field[:, 1:4] == 0) and np.all(field[:, [0, 4]] != 0)

    @pytest.mark.parametrize(
        "f",
        [lambda mu: np.array(float(mu)) ** 2, lambda theta: theta.max() // 0.5, X[..., 0] ** 2],
    )
    def test_functions_without_derivatives_have_no_steps(self, f) -> None:
        found = integrands(exceeding({"f": f}, 1.0), SAMPLE, jumps=True)
        np.testing.assert_array_equal(np.unique(found.values), [0, 1])
        assert not len(found.jumping)
