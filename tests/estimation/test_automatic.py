"""The estimate with nothing given: what it chooses, what it says, and what it refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from steinax.estimation._arena import Trial
from steinax.estimation._automatic import blocks
from steinax.estimation._choice import choose
from steinax.estimation._recipes import Recipe

BANANA = targets.banana(3)
SAMPLE = BANANA.sample(0, chains=4, length=60)
SMOOTH = {"sine": lambda x: jnp.sin(x[0]), "cubic": lambda x: x[1] * x[0]}


class TestChooses:
    def test_better_than_the_best_polynomial(self) -> None:
        """A banana's mean of a sine is no polynomial's: kernels leave a tenth of the error."""
        chosen, quadratic = (
            sx.estimate(SMOOTH, SAMPLE),
            sx.estimate(SMOOTH, SAMPLE, sx.Polynomial(2)),
        )
        assert chosen["sine"].mcse < quadratic["sine"].mcse / 10

    def test_plain_for_noise(self) -> None:
        """Noise that has nothing to do with the draws is averaged, and costs nothing."""
        noise = np.random.default_rng(1).normal(size=(4, 60, 20))
        found = sx.estimate(noise, SAMPLE)
        assert found.chosen == ("plain Monte Carlo",) * 20
        np.testing.assert_allclose(found.value, found.plain_value, rtol=1e-12)

    def test_each_integrand_its_own(self) -> None:
        noise = np.random.default_rng(1).normal(size=(4, 60, 1))
        x = SAMPLE.draws[..., :1]
        found = sx.estimate(np.concatenate([x, noise], axis=-1), SAMPLE)
        assert found.chosen[1] == "plain Monte Carlo" != found.chosen[0]
        assert found.worth[0] > 1e3

    def test_is_exact_for_polynomials_on_gaussians(self) -> None:
        x = np.random.default_rng(0).normal(size=(2, 50, 3)) * [1.0, 1e6, 1e-6]
        found = sx.estimate(lambda x: x[0] ** 2 + x[2], sx.Sample(x, -x / [1.0, 1e12, 1e-12]))
        assert abs(found.value[0] - 1) < 1e-10

    def test_straightens_a_funnel_and_says_so(self) -> None:
        rng = np.random.default_rng(0)
        t, z = rng.normal(size=(1, 400, 1)), rng.normal(size=(1, 400, 4))
        score = np.concatenate([-t + (z**2 - 1).sum(-1, keepdims=True), -z * np.exp(-t)], axis=-1)
        sample = sx.Sample(np.concatenate([t, z * np.exp(t)], axis=-1), score)
        found = sx.estimate("x", sample)
        assert "a funnel straightened" in found.note
        assert np.all(found.worth > 20)
        assert np.all(np.abs(found.value) < 5 * found.mcse)  # five means of 0: 3e-6 false alarms


class TestSays:
    FOUND = sx.estimate(SMOOTH, SAMPLE)

    def test_what_was_tried(self) -> None:
        tried = self.FOUND.candidates
        assert tried.names[0] == "plain Monte Carlo"
        assert tried.left.shape == tried.mixture.shape == (len(tried.names), 2)
        np.testing.assert_allclose(tried.mixture.sum(axis=0), 1.0)
        np.testing.assert_allclose(tried.left[0], 1.0)
        text = str(tried)
        assert "Polynomial(2) + SquaredExponential" in text
        assert text.splitlines()[0].split() == [
            "variance", "left", "(geometric", "mean)", "weight", "candidate",
        ]  # fmt: skip

    def test_of_one_integrand(self) -> None:
        assert self.FOUND["sine"].candidates.left.shape[1] == 1
        assert self.FOUND["sine"].chosen == self.FOUND.chosen[:1]

    def test_the_choice_below_the_table(self) -> None:
        assert "the best of" in repr(self.FOUND)


class TestWarns:
    def test_where_one_draw_makes_most_of_the_error(self) -> None:
        a, b = np.random.default_rng(0).normal(size=(2, 4, 100))
        x = np.stack([a, b + a**2 / 2], axis=-1)
        found = sx.estimate("x", sx.Sample(x, np.stack([a * b - a, -b], axis=-1)))
        assert "one draw makes most of the error" in found.note

    def test_not_where_many_draws_do(self) -> None:
        noise = np.random.default_rng(1).normal(size=(4, 60, 3))
        assert "one draw" not in sx.estimate(noise, SAMPLE).note


class TestFolds:
    def test_many_where_draws_are_independent(self) -> None:
        assert len(blocks(4, 250, 1.0).boundaries(4, 250)) == 24

    def test_fewer_where_they_depend(self) -> None:
        assert len(blocks(4, 250, 15.0).boundaries(4, 250)) == 16
        assert len(blocks(4, 250, 100.0).boundaries(4, 250)) == 8


class TestDisagreement:
    """Two candidates of small errors that differ by many of them are not both right."""

    def test_enters_the_error(self) -> None:
        rng = np.random.default_rng(0)
        plain = Trial(Recipe(0), rng.normal(size=(100, 1)), np.ones(1))
        one, other = (rng.normal(size=(100, 1)) * 0.01 for _ in range(2))
        small = np.full(1, 1e-4)
        alike = choose(
            [plain, Trial(Recipe(1), one, small), Trial(Recipe(2), other, small)], np.ones(1)
        )
        apart = choose(
            [plain, Trial(Recipe(1), one, small), Trial(Recipe(2), other + 0.1, small)], np.ones(1)
        )
        assert alike.disagreement[0] < 1e-6
        assert 1e-3 < apart.disagreement[0] < 1e-2


class TestRefuses:
    def test_a_handful_of_draws(self) -> None:
        x = np.random.default_rng(0).normal(size=(1, 4, 1))
        with pytest.raises(ValueError, match="use fewer folds, or more draws"):
            sx.estimate("x", sx.Sample(x, -x))

    @pytest.mark.parametrize(
        "option",
        [{"split": sx.CrossFit(4)}, {"penalty": sx.Ridge(1.0)}, {"solver": sx.Exact()}],
        ids=str,
    )
    def test_options_without_a_family(self, option) -> None:
        with pytest.raises(ValueError, match="go with a family: give one as the third argument"):
            sx.estimate("x", SAMPLE, **option)


@pytest.mark.parametrize(
    ("chains", "length", "dim"), [(1, 9, 1), (2, 5, 3), (1, 30, 40), (3, 11, 2)]
)
def test_few_draws(chains: int, length: int, dim: int) -> None:
    """Any size that can be averaged gives finite numbers."""
    x = np.random.default_rng(0).normal(size=(chains, length, dim))
    found = sx.estimate(lambda x: jnp.cos(x[0]), sx.Sample(x, -x))
    assert np.all(np.isfinite(found.value))
    assert np.all(found.mcse > 0)


@pytest.mark.slow
def test_many_draws_use_landmarks() -> None:
    x = np.random.default_rng(0).normal(size=(4, 1000, 3))
    found = sx.estimate({"f": lambda x: jnp.exp(x[0] / 2)}, sx.Sample(x, -x))
    assert found.worth[0] > 1e4
    assert abs(found.value[0] - np.exp(1 / 8)) < 5 * found.mcse[0]  # false alarm 6e-7
