"""Where integrands jump is found from functions, and not where it cannot be."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.data import Integrands, integrands, links

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
        (lambda mu: mu < 0.3, [-1, 0, 0, 0, 0], -0.3),
        (lambda x: x[4] > 1, [0, 0, 0, 0, 1], 1.0),
        (lambda theta: theta[0] > theta[2], [0, 1, 0, -1, 0], 0.0),
        (lambda mu, u: mu + 2 * u < 3, [-1, 0, 0, 0, -2], -3.0),
        (lambda theta: W[0] @ theta > 0.5, [0, 1, 2, -1, 0], 0.5),
        (lambda mu: np.mean(np.array([mu, 1.0])) > 1.1, [1, 0, 0, 0, 0], 1.2),
        (lambda mu: jnp.exp(3 * mu) > 20, [1, 0, 0, 0, 0], np.log(20) / 3),
    ],
)
def test_a_jump_is_found(f, along: list[float], threshold: float) -> None:
    (step,) = steps(f)
    unit = np.linalg.norm(step.along)
    np.testing.assert_allclose(
        step.along / unit, np.array(along) / np.linalg.norm(along), atol=1e-7
    )
    assert step.threshold / unit == pytest.approx(threshold / np.linalg.norm(along), abs=1e-7)
    assert (step.low, step.high) == (0.0, 1.0)


def test_the_step_is_the_integrand() -> None:
    found = integrands({"f": lambda theta: 3.0 - 5.0 * (W @ theta > 1.0)}, SAMPLE, jumps=True)
    for i, step in enumerate(found.steps):
        assert step is not None
        above = SAMPLE.x @ step.along > step.threshold
        np.testing.assert_array_equal(
            found.rows[:, i], np.where(above, step.high, step.low), strict=True
        )


@pytest.mark.parametrize(
    "f",
    [
        lambda mu: mu,
        lambda mu: 1.0 * (mu > 0) + (mu > 1),
        lambda mu: abs(mu - 1) > 1,
        lambda mu, u: (mu > 1) & (u > 1),
        lambda theta: theta[0] * theta[1] > 1,
        lambda mu: mu > 100,
    ],
)
def test_what_is_no_single_threshold_has_no_step(f) -> None:
    assert steps(f) == (None,)


def test_a_function_that_fails_between_draws_has_no_step() -> None:
    known = {float(value) for value in SAMPLE.x[:, 0]}

    def f(mu):
        if float(mu) not in known:
            raise RuntimeError("not a draw")
        return mu > 0.3

    assert steps(f) == (None,)


def test_arrays_and_names_have_no_steps() -> None:
    assert integrands({"a": X[..., 0] > 0, "mu": "mu"}, SAMPLE, jumps=True).steps == ()


def test_steps_stay_with_their_columns() -> None:
    first = integrands({"a": "mu", "b": lambda mu: mu > 0.3}, SAMPLE, jumps=True)
    second = integrands({"c": "u"}, SAMPLE)
    both = Integrands.joined([second, first])
    assert [step is not None for step in both.steps] == [False, False, True]
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
    (step,) = steps(lambda tau: tau > 2, sample)
    assert step.along.tolist() == [0, 0, 0, 0, 1]
    assert step.threshold == pytest.approx(np.log(2))
