"""Wrong scores are refused and named; right ones are not."""

import numpy as np
import pytest
from scipy.stats import skew

import steinax as sx
from full import FULL
from mistakes import MISTAKES, TARGETS, chains, gaussian
from steinax.auditing import _identities

SHAPE = (4, 250, 10)
NAMED_ON = ("gaussian", "log gamma")
NAMED, REFUSED, EVERY = (100, 200, 1) if FULL else (10, 50, 10)


def _kind(x: np.ndarray, score: np.ndarray) -> str:
    report = sx.audit(sx.Sample(x, score))
    return "passed" if report.passed else report.fatal[0].kind


class TestMistakes:
    """At 4 x 250 draws with AR(1) 0.5, in ten dimensions."""

    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_is_named(self, mistake: str) -> None:
        kind, make = MISTAKES[mistake]
        for seed in range(2):
            assert _kind(*make(*gaussian(chains(seed, SHAPE, 0.5)))) == kind

    @pytest.mark.slow
    @pytest.mark.parametrize("target", NAMED_ON)
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_is_named_in_99_of_100_seeds(self, mistake: str, target: str) -> None:
        if (target, mistake) == ("log gamma", "missing logit Jacobian"):
            pytest.skip("an error of 0.2 standard deviations: below the limit that is printed")
        kind, make = MISTAKES[mistake]
        found = [_kind(*make(*TARGETS[target](chains(s, SHAPE, 0.5)))) for s in range(NAMED)]
        assert found.count(kind) >= 0.99 * NAMED  # on CI: in every one of 10

    def test_columns_are_named(self) -> None:
        x, score = gaussian(chains(0, SHAPE, 0.5))
        names = [f"p{i}" for i in range(10)]
        for mistake in ("missing log Jacobian", "constrained by exp", "constrained by sigmoid"):
            sample = sx.Sample(*MISTAKES[mistake][1](x, score), names)
            (finding,) = sx.audit(sample).fatal
            assert finding.columns == ("p3", "p7")
            assert "p3, p7" in finding.message

    def test_the_opposite_sign_of_some_columns(self) -> None:
        x, score = gaussian(chains(0, SHAPE, 0.5))
        score[..., [3, 7]] *= -1
        (finding,) = sx.audit(sx.Sample(x, score, [f"p{i}" for i in range(10)])).fatal
        assert finding.kind == "sign" and finding.columns == ("p3", "p7")

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("how", ["thinned", "shuffled"])
    def test_scores_of_other_draws_are_not_called_tempered(self, how: str, seed: int) -> None:
        x, score = gaussian(chains(seed, SHAPE, 0.5))
        if how == "thinned":
            x, score = x[:, ::2], score[:, :125]
        else:
            score = np.random.default_rng(seed).permuted(score, axis=1)
        (finding,) = sx.audit(sx.Sample(x, score)).fatal
        assert finding.kind == "scores" and "probably those of other draws" in finding.message

    def test_order_is_given_back(self) -> None:
        x, score = gaussian(chains(0, SHAPE, 0.5))
        (finding,) = sx.audit(sx.Sample(*MISTAKES["permuted columns"][1](x, score))).fatal
        assert "scores[..., [2, 0, 1, 3, 4, 5, 6, 7, 9, 8]]" in finding.message

    def test_mean_scores_alone_would_catch_one_of_six(self) -> None:
        """The mutant: only E[score] = 0 is tested. The Jacobian is what it sees."""
        x, score = gaussian(chains(0, SHAPE, 0.5))
        caught = set()
        for kind, make in MISTAKES.values():
            wrong = make(x, score)[1]
            statistics = sx.chains.chain_statistics(wrong)
            if np.any(np.abs(statistics.mean) > 5 * statistics.mcse):
                caught.add(kind)
        assert caught == {"jacobian"}

    @pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
    def test_units_do_not_matter(self, scale: float) -> None:
        x, score = gaussian(chains(0, SHAPE, 0.5))
        assert _kind(x * scale, score / scale) == "passed"
        assert _kind(x * scale, -score / scale) == "sign"

    def test_in_many_dimensions(self) -> None:
        x, score = gaussian(chains(0, (4, 250, 60), 0.5))
        assert _kind(x, score) == "passed"
        assert _kind(x, -score) == "sign"
        assert _kind(x[:, 1:], score[:, :-1]) == "lag"
        assert _kind(x, score[..., ::-1]) == "order"


class TestIdentities:
    """Errors that one identity sees and no other, on independent normal draws in two dimensions."""

    X = np.random.default_rng(0).normal(size=(4, 2000, 2))

    @pytest.mark.parametrize("sees", ["mean", "square", "tanh", "cosine", "pair"])
    def test_sees_what_the_others_do_not(self, sees: str) -> None:
        x = self.X
        error = {
            "mean": 0.1 * np.ones_like(x),
            "square": 0.15 * x,
            "tanh": 3.0 * (np.tanh(x) - 0.6057 * x),  # E[y tanh y] = 0.6057
            "cosine": 0.4 * (np.cos(2 * x) - np.exp(-2)),  # even, of mean zero
            "pair": 0.15 * x[..., ::-1] * [1, -1],
        }[sees]
        assert _kind(x, -x) == "passed"
        assert _kind(x, -x + error) != "passed"
        assert _kind(x, -x + 0.1 * error) == "passed"


def test_a_long_tail_that_was_rarely_drawn_is_allowed_for() -> None:
    r"""A mean below zero of a series skewed upwards by $\gamma$: $\gamma (1 + 2 t^2) / 6$ more."""
    series = np.random.default_rng(0).exponential(size=(4, 250, 1))
    series -= series.mean()
    below, above = (_identities.tested([series + shift], 1) for shift in (-0.1, 0.1))
    ess = series.var() / below.error**2
    more = skew(series.ravel()) / np.sqrt(ess) * (1 + 2 * above.critical**2) / 6
    np.testing.assert_allclose(below.critical - above.critical, more, rtol=0.01)
    assert more > 0.3


class TestUnnamed:
    def test_another_model(self) -> None:
        x, _ = gaussian(chains(0, SHAPE, 0.5))
        (finding,) = sx.audit(sx.Sample(x, -(x**3))).fatal
        assert finding.kind == "scores"
        assert "finite differences" in finding.message
        assert 'audit="unadjusted"' in finding.message

    @pytest.mark.parametrize("dim", [1, 3])
    def test_boundaries(self, dim: int) -> None:
        rng = np.random.default_rng(0)
        exponential, uniform = rng.exponential(size=(4, 250, dim)), rng.uniform(size=(4, 250, dim))
        for draws, score in ((exponential, -np.ones_like(exponential)), (uniform, 0 * uniform)):
            (finding,) = sx.audit(sx.Sample(draws, score)).fatal
            assert finding.kind == "boundary"
            assert "Transform them to the whole line" in finding.message

    def test_huge_scores_are_no_number(self) -> None:
        x, score = gaussian(chains(0, SHAPE, 0.5))
        assert _kind(x, score * 1e200) == "tempered"


class TestRightScores:
    """Nominally one audit in 50,000 is refused; these counts allow one in 1,000."""

    @pytest.mark.parametrize("target", TARGETS)
    def test_are_not_refused(self, target: str) -> None:
        for seed in range(8):
            assert _kind(*TARGETS[target](chains(seed, (4, 50, 6), 0.9))) == "passed"
            assert _kind(*TARGETS[target](chains(seed, (1, 300, 6), 0.0))) == "passed"

    @pytest.mark.slow
    @pytest.mark.parametrize("target", TARGETS)
    @pytest.mark.parametrize(
        ("shape", "rho"),
        [((4, 50, 10), 0.9), ((1, 1000, 3), 0.0), ((4, 250, 10), 0.5), ((4, 250, 10), -0.5)],
        ids=["short", "one chain", "AR(1) 0.5", "antithetic"],
    )
    def test_are_refused_less_than_once_in_1000(self, target: str, shape, rho: float) -> None:
        """At a rate of 1e-4 two or more of 200 come once in 5,000 runs of a case.

        CI has 50 seeds and allows none: at the nominal rate that fails once in 1,000 runs of a case.
        """
        refused = sum(
            _kind(*TARGETS[target](chains(seed, shape, rho))) != "passed" for seed in range(REFUSED)
        )
        assert refused <= REFUSED // 200

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [100, 1000])
    def test_of_real_posteriors(self, data_dir, size: int) -> None:
        audits, refused = 0, []
        for path in sorted((data_dir / "posteriordb").glob("*/scores.npz")):
            with np.load(path) as stored:
                u, score = stored["u"], stored["score"]
            for start in range(0, len(u), EVERY * size):
                audits += 1
                part = slice(start, start + size)
                if _kind(u[part], score[part]) != "passed":
                    refused.append((path.parent.name, start))
        assert audits == 22 * 10_000 // (EVERY * size)
        assert len(refused) <= audits / 1000, refused


class TestLimit:
    @pytest.mark.parametrize("linear", [False, True], ids=["constant", "linear"])
    def test_is_never_below_an_undetected_bias(self, linear: bool) -> None:
        """An error that grows until it is refused. The target is Gaussian, so its controlled estimates
        of degree 2 are off by that error and nothing else. A limit leaves three standard errors: the
        sweep of a seed fails once in 700.
        """
        seen = 0
        for seed in range(4):
            x = chains(seed, (4, 250, 3), 0.5)
            for size in np.geomspace(0.02, 1, 10):
                score = -(1 - size) * x if linear else size - x
                y, u = x - x.mean(axis=(0, 1)), score
                controlled = y**2 + y * u if linear else x + u  # coefficients of the exact fit
                plain = (y**2).mean(axis=(0, 1)) if linear else 1.0
                bias = controlled.mean(axis=(0, 1)) / plain
                np.testing.assert_allclose(bias, size)
                report = sx.audit(sx.Sample(x, score))
                if not report.passed:
                    break
                seen += 1
                assert np.all(bias <= (report.limit_squares if linear else report.limit))
            assert size < 1
        assert seen > 8

    def test_falls_with_more_draws(self) -> None:
        limits = []
        for length in (100, 1000, 10_000):
            x, score = gaussian(chains(0, (4, length, 3), 0.0))
            limits.append(sx.audit(sx.Sample(x, score)).limit.max())
        assert limits[0] > 2 * limits[1] > 4 * limits[2]
        assert limits[2] > 0.02
