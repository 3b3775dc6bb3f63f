"""The log density of each draw gives wrong scores away, where means of identities are too weak to."""

import numpy as np
import pytest
from benchmarks.trust._scored import DENSITIES, RIGHT, chains
from benchmarks.trust._wrong import WRONG

import steinax as sx

SHAPE = (4, 50)

# Cases in which estimates are off by more than two plain standard errors at 4 x 50 draws, and the mistake
# that is named.
NAMED = {
    "log Jacobian missing, sd 0.3": "jacobian",
    "correlation's Jacobian missing, sd 0.5": "jacobian",
    "simplex Jacobian missing, concentration 2": "tempered",
    "tempered 0.5, log gamma": "tempered",
    "likelihood only, prior weight 0.2": "term",
    "other data, 20% of them": "term",
    "one draw late, AR(1) 0.5": "lag",
    "scores of two chains swapped": "chains",
    "one chain of four: sign": "sign",
    "one chain of four: tempered 0.5": "tempered",
    "one chain of four: log Jacobian, sd 1": "jacobian",
}


def _sample(name: str, seed: int, length: int = 50) -> sx.Sample:
    wrong = WRONG[name]
    draws, scores, density = wrong.make(chains(seed, (4, length, wrong.dim), wrong.rho))
    return sx.Sample(draws, scores, log_density=density)


def _without(sample: sx.Sample) -> sx.Sample:
    return sx.Sample(sample.draws, sample.scores)


@pytest.mark.parametrize("mistake", NAMED)
def test_a_mistake_is_named(mistake: str) -> None:
    for seed in range(3):
        report = sx.audit(_sample(mistake, seed))
        assert [finding.kind for finding in report.fatal] == [NAMED[mistake]]


def test_identities_alone_are_too_weak_for_it() -> None:
    """What the log densities add: the same draws and scores pass without them."""
    passed = [
        sx.audit(_without(_sample("log Jacobian missing, sd 0.3", seed))).passed
        for seed in range(5)
    ]
    assert all(passed)


def test_the_column_and_the_bias_are_told() -> None:
    sample = _sample("log Jacobian missing, sd 0.3", 0)
    (finding,) = sx.audit(sample).fatal
    assert finding.columns == ("x[0]",)
    assert "add 1 to the scores" in finding.message
    (finding,) = sx.audit(_sample("one chain of four: tempered 0.5", 0)).fatal
    assert finding.message.startswith("chain 2 alone fails")
    (finding,) = sx.audit(_sample("likelihood only, prior weight 0.2", 0)).fatal
    assert "such as a prior" in finding.message
    assert "log_density=None" in finding.message


@pytest.mark.parametrize("target", RIGHT)
def test_right_scores_pass(target: str) -> None:
    """Heavy tails, funnels and walls included: of 7,000 such samples the benchmark refuses none."""
    for seed in range(3):
        for shape, rho in (((4, 50, 5), 0.3), ((4, 100, 10), 0.5)):
            x, score = RIGHT[target](chains(seed, shape, rho))
            report = sx.audit(sx.Sample(x, score, log_density=DENSITIES[target](x)))
            assert report.passed and report.compared


@pytest.mark.slow
@pytest.mark.parametrize("size", [200, 1000])
def test_right_scores_of_real_posteriors_pass(data_dir, size: int) -> None:
    refused = []
    for path in sorted((data_dir / "posteriordb").glob("*/scores.npz")):
        with np.load(path) as stored:
            u, score, density = stored["u"], stored["score"], stored["logp"]
        for start in range(0, len(u), 2500):
            part = slice(start, start + size)
            if not sx.audit(sx.Sample(u[part], score[part], log_density=density[part])).passed:
                refused.append((path.parent.name, start))
    assert not refused


def test_a_potential_energy_will_do() -> None:
    """Some samplers keep minus the log density under its name; right scores are not refused for it."""
    x, score = RIGHT["banana"](chains(0, (4, 100, 3), 0.3))
    density = DENSITIES["banana"](x)
    assert sx.audit(sx.Sample(x, score, log_density=-density)).passed
    sample = _sample("log Jacobian missing, sd 0.5", 0)
    assert sample.log_density is not None
    turned = sx.Sample(sample.draws, sample.scores, log_density=-sample.log_density)
    assert sx.audit(turned).fatal[0].kind == "jacobian"


def test_scores_of_another_model_are_refused() -> None:
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(2, 4, 100, 3))
    report = sx.audit(sx.Sample(x, -other, log_density=-0.5 * (x**2).sum(axis=2)))
    assert not report.passed


def test_log_densities_of_few_digits_are_no_mistake() -> None:
    """CmdStan writes six digits unless it is told otherwise: lp__ of -1234.56."""
    x, score = RIGHT["Gaussian"](chains(0, (4, 250, 5), 0.3))
    density = np.round(DENSITIES["Gaussian"](x) - 1234.0, 2)
    assert sx.audit(sx.Sample(x, score, log_density=density)).passed


def test_repeated_draws_are_no_mistake() -> None:
    """Metropolis stays where it is when it rejects."""
    x, score = RIGHT["log gamma, shape 1"](chains(0, (4, 250, 4), 0.3))
    x, score = (np.repeat(one, 3, axis=1) for one in (x, score))
    density = DENSITIES["log gamma, shape 1"](x)
    assert sx.audit(sx.Sample(x, score, log_density=density)).passed


class TestInput:
    def test_one_chain(self) -> None:
        x = np.random.default_rng(0).normal(size=(100, 2))
        sample = sx.Sample(x, -x, log_density=-0.5 * (x**2).sum(axis=1))
        assert sample.log_density is not None and sample.log_density.shape == (1, 100)
        assert sx.audit(sample).compared

    @pytest.mark.parametrize(
        ("density", "word"),
        [(np.zeros((4, 99)), "shape"), (np.full((4, 100), np.nan), "not finite")],
    )
    def test_what_cannot_be_is_refused(self, density: np.ndarray, word: str) -> None:
        x = np.random.default_rng(0).normal(size=(4, 100, 2))
        with pytest.raises(ValueError, match=word):
            sx.Sample(x, -x, log_density=density)

    def test_too_few_draws_are_not_compared(self) -> None:
        x = np.random.default_rng(0).normal(size=(4, 10, 8))
        report = sx.audit(sx.Sample(x, -x, log_density=-0.5 * (x**2).sum(axis=2)))
        assert report.passed and not report.compared


class TestDifferences:
    """The log density itself, at a few draws."""

    X = np.random.default_rng(0).normal(size=(4, 100, 3))

    @staticmethod
    def _density(x: np.ndarray) -> float:
        return float(-0.5 * np.sum(x**2))

    def test_right_scores_agree(self) -> None:
        report = sx.audit(sx.Sample(self.X, -self.X), log_density=self._density)
        assert report.passed and report.compared
        assert "the scores agree with the log density" in repr(report)

    def test_a_small_error_is_found_in_its_column(self) -> None:
        """A hundredth: far below what identities of 400 draws can see."""
        wrong = -self.X + [0.0, 0.01, 0.0]
        assert sx.audit(sx.Sample(self.X, wrong)).passed
        (finding,) = sx.audit(sx.Sample(self.X, wrong), log_density=self._density).fatal
        assert finding.kind == "term"
        assert finding.columns == ("x[1]",)
        assert "finite difference" in finding.message

    def test_along_directions_where_dimensions_are_many(self) -> None:
        x = np.random.default_rng(0).normal(size=(4, 200, 60))
        assert sx.audit(sx.Sample(x, -x), log_density=self._density).passed
        wrong = -x + 0.1 * np.eye(60)[7]
        report = sx.audit(sx.Sample(x, wrong), log_density=self._density)
        assert [finding.kind for finding in report.fatal] == ["differences"]

    def test_a_density_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(ValueError, match="one finite number"):
            sx.audit(sx.Sample(self.X, -self.X), log_density=lambda x: x)


def test_modes_that_are_far_apart_are_no_mistake() -> None:
    """The nearest draws lie in different modes, so that the rule says nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 100, 12)) + np.where(rng.random((4, 100, 12)) < 0.6, 3.0, -3.0)
    parts = (
        np.log([0.6, 0.4])[:, None, None, None]
        - 0.5 * (x - np.array([3.0, -3.0])[:, None, None, None]) ** 2
    )
    density = np.logaddexp(*parts)
    high = np.exp(parts[0] - density)
    score = -x + 3.0 * high - 3.0 * (1.0 - high)
    assert sx.audit(sx.Sample(x, score, log_density=density.sum(axis=2))).passed
