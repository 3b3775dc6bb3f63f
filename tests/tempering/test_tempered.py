import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx

T = np.array([0.0, 0.3, 1.0])


def normal_draws(count: int = 40, dim: int = 2) -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(len(T), count, dim))
    return x / np.sqrt(1 + T)[:, None, None]


def arguments(x: np.ndarray) -> tuple:
    return x, -(x**2).sum(-1) / 2, -x, -x


def test_scores_are_those_of_the_temperature() -> None:
    x = normal_draws()
    tempered = sx.Tempered(x, -(x**2).sum(-1) / 2, -2 * x, -x, T)
    np.testing.assert_allclose(tempered.sample(1).scores[0], -x[1] - 0.3 * 2 * x[1])
    assert len(tempered) == 3 and tempered.sample(2).chains == 1


def test_log_densities_give_values_and_scores() -> None:
    x = normal_draws()
    found = sx.Tempered.from_logdensity(
        lambda x: -jnp.sum(x**2) / 2, lambda x: -jnp.sum(x**2), x, T, ["a", "b"]
    )
    np.testing.assert_allclose(found.log_likelihood[2][0], -(x[2] ** 2).sum(-1) / 2)
    np.testing.assert_allclose(found.likelihood_scores[0][0], -x[0])
    np.testing.assert_allclose(found.prior_scores[0][0], -2 * x[0])
    assert found.names == ("a", "b")


def test_temperatures_may_differ_in_length_and_have_chains() -> None:
    parts = [x.reshape(2, 20, 2)[:, : 20 - i] for i, x in enumerate(normal_draws())]
    each = zip(*(arguments(part) for part in parts), strict=True)
    tempered = sx.Tempered(*(list(one) for one in each), T)
    assert [one.shape for one in tempered.log_likelihood] == [(2, 20), (2, 19), (2, 18)]


@pytest.mark.parametrize(
    ("temperatures", "message"),
    [
        ([0.1, 0.3, 1.0], "from 0, the prior"),
        ([0.0, 0.3, 0.9], "from 0, the prior"),
        ([0.0, 1.0, 0.3], "increasing order"),
        ([0.0, 0.0, 1.0], "increasing order"),
        ([0.0, 1.0], "one array for each"),
        ([0.0, 0.1, 0.2, 0.3], "draws at 3 temperatures, and there are 4"),
        ([1.0], "at least two"),
    ],
)
def test_bad_temperatures_are_refused(temperatures: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sx.Tempered(*arguments(normal_draws()), temperatures)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, np.zeros((3, 39)), "one number for each draw"),
        (1, np.zeros((3, 40)), "the same on every draw"),
        (1, np.full((3, 40), -np.inf), "not finite"),
        (1, np.zeros((2, 40)), "one array"),
        (2, np.zeros((3, 40, 1)), "one entry per dimension"),
        (3, np.zeros((3, 40, 1)), "one entry per dimension"),
    ],
)
def test_bad_arrays_are_refused(place: int, value: np.ndarray, message: str) -> None:
    given = list(arguments(normal_draws()))
    given[place] = value
    with pytest.raises(ValueError, match=message):
        sx.Tempered(*given, T)


def test_dimensions_must_agree() -> None:
    x = normal_draws()
    parts = [arguments(x[0]), arguments(x[1]), arguments(x[2][:, :1])]
    with pytest.raises(ValueError, match="same parameters"):
        sx.Tempered(*(list(one) for one in zip(*parts, strict=True)), T)
