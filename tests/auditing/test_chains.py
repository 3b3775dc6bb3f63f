"""What the audit says of the chains themselves, and how it prints."""

import pickle

import numpy as np
import pytest

import steinax as sx
from steinax.auditing._audit import interleaved

X = np.random.default_rng(0).normal(size=(4, 100, 3))


def _finding(draws: np.ndarray, kind: str, **options) -> sx.auditing.Finding:
    report = sx.audit(sx.Sample(draws, -draws, **options))
    found = [problem for problem in report.problems if problem.kind == kind]
    assert len(found) == 1, report
    assert found[0].fatal == (not report.passed)
    return found[0]


def test_nothing_to_say() -> None:
    report = sx.audit(sx.Sample(X, -X))
    assert report.passed
    assert report.problems == ()
    assert report.limit.shape == report.limit_squares.shape == (3,)


def test_duplicate_chains() -> None:
    draws = X.copy()
    draws[3] = draws[1]
    finding = _finding(draws, "duplicate")
    assert finding.fatal
    assert "chains 1 and 3 are the same" in finding.message


def test_rounded_draws_coincide_by_chance() -> None:
    """Every draw to a whole number has many like it in its own chain, and in the others."""
    assert "duplicate" not in [one.kind for one in sx.audit(sx.Sample(np.round(X), -X)).problems]
    draws = np.round(X)
    draws[3] = draws[1]
    assert "chains 1 and 3 are the same" in _finding(draws, "duplicate").message


def test_stuck_chain() -> None:
    draws = X.copy()
    draws[2] = draws[2, :1]
    assert "chain 2 is stuck" in _finding(draws, "stuck").message
    slow = X.copy()
    slow[1] = 0.3 + 1e-4 * slow[1]
    assert _finding(slow, "stuck").fatal
    jump = X.copy()
    jump[1, :99], jump[1, 99] = 0.0, 1.0  # it covers the spread, in one step of 99
    assert _finding(jump, "stuck").fatal


def test_rejections_are_a_remark_only_where_there_are_very_many() -> None:
    draws = np.repeat(np.random.default_rng(1).normal(size=(4, 100, 3)), 4, axis=1)
    assert sx.audit(sx.Sample(draws, -draws)).problems == ()
    draws = np.repeat(np.random.default_rng(1).normal(size=(4, 100, 3)), 20, axis=1)
    finding = _finding(draws, "rejections")
    assert not finding.fatal
    assert "A smaller step" in finding.message


def test_constant_dimension() -> None:
    draws = X.copy()
    draws[..., 1] = 2.0
    finding = _finding(draws, "constant", names=["a", "b", "c"])
    assert finding.columns == ("b",)
    assert "never change: b." in finding.message


def test_one_draw_repeated() -> None:
    finding = _finding(np.ones((4, 100, 3)), "repeated")
    assert "all 400 draws are the same" in finding.message


@pytest.mark.parametrize(("count", "fatal"), [(1, False), (40, False), (41, True)])
def test_divergences(count: int, fatal: bool) -> None:
    diverging = np.zeros((4, 100), dtype=bool)
    diverging.flat[:count] = True
    finding = _finding(X, "divergences", diverging=diverging)
    assert finding.fatal is fatal
    assert f"{count} of 400 draws" in finding.message
    assert "reparametrise" in finding.message


def test_chains_that_disagree_are_a_remark() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 100, 1)) + np.array([-4, 4, -4, 4])[:, None, None]
    score = -x + 4 * np.tanh(4 * x)  # right for two modes of equal weight
    report = sx.audit(sx.Sample(x, score))
    assert report.passed
    assert [problem.kind for problem in report.problems] == ["rhat"]
    assert "Run them longer" in repr(report)


def _slow_chains(start: float, chains: int = 20, length: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = np.empty((chains, length, 2))
    now = np.full((chains, 2), start) if start else rng.normal(size=(chains, 2))
    for i in range(length):
        now = 0.95 * now + np.sqrt(1 - 0.95**2) * rng.normal(size=(chains, 2))
        x[:, i] = now
    return x


def test_swapped_axes() -> None:
    x = _slow_chains(0.0)
    swapped = np.swapaxes(x, 0, 1)
    finding = _finding(swapped, "axes")
    assert finding.fatal and "draws.swapaxes(0, 1)" in finding.message
    with pytest.raises(sx.AuditError, match="axes seem to be swapped"):
        sx.estimate("x", sx.Sample(swapped, -swapped))
    assert sx.audit(sx.Sample(x, -x)).passed


def test_interleaved_walkers() -> None:
    """As a sampler of an ensemble returns them in one flat array: 64 walkers, and as chains."""
    x = _slow_chains(0.0)
    flat = np.swapaxes(x, 0, 1).reshape(1, -1, 2)
    finding = _finding(flat, "axes")
    assert finding.fatal and f"{len(x)} walkers" in finding.message
    again = flat.reshape(-1, len(x), 2).swapaxes(0, 1)
    np.testing.assert_array_equal(again, x)
    for chains in (x, np.sin(np.arange(2000) / 7)[None, :, None]):
        assert interleaved(np.moveaxis(chains, -1, 0)) == 0


@pytest.mark.parametrize("shape", [(1, 20), (1, 60), (3, 17), (4, 100), (1, 1000)])
def test_chance_does_not_interleave_walkers(shape: tuple[int, int]) -> None:
    """Of 3,000 samples each, also with the heaviest tails, that wander or alternate."""
    rng = np.random.default_rng(0)
    for _ in range(600):
        noise = rng.normal(size=(2, *shape))
        wander = noise.copy()
        for i in range(1, shape[1]):
            wander[..., i] += 0.7 * wander[..., i - 1]
        alternating = wander * (-1) ** np.arange(shape[1])
        for y in (noise, rng.standard_cauchy(size=(1, *shape)), wander, alternating, noise.round()):
            assert interleaved(y) == 0


def test_chains_that_drift_together_are_not_swapped() -> None:
    x = _slow_chains(30.0)
    assert np.corrcoef(x[:-1, :, 0].ravel(), x[1:, :, 0].ravel())[0, 1] > 0.9
    assert "axes" not in {problem.kind for problem in sx.audit(sx.Sample(x, -x)).problems}


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 7), (1, 19)])
def test_too_few_draws(shape: tuple[int, int]) -> None:
    draws = np.random.default_rng(0).normal(size=(*shape, 2))
    report = sx.audit(sx.Sample(draws, -draws))
    if shape == (1, 1):
        assert report.fatal[0].kind == "repeated"
    else:
        assert report.problems[-1].kind == "short"
        assert report.passed
        assert "too few to test" in repr(report)
    assert np.all(np.isinf(report.limit))


@pytest.mark.parametrize("length", [5, 50])
def test_on_a_box_scores_count_as_verified_however_few_the_draws(length: int) -> None:
    draws = np.random.default_rng(0).uniform(size=(2, length, 1))
    assert sx.audit(sx.Sample(draws, 0.0 * draws, space=sx.spaces.Box(0.0, 1.0))).verified


@pytest.mark.parametrize("shape", [(1, 20, 1), (3, 8, 30), (2, 11, 2), (1, 40, 40)])
def test_odd_shapes_of_right_scores_pass(shape: tuple[int, int, int]) -> None:
    for seed in range(5):
        draws = np.random.default_rng(seed).normal(size=shape)
        assert sx.audit(sx.Sample(draws, -draws)).passed


def test_columns_that_are_the_same() -> None:
    draws = np.concatenate([X, X[..., :1]], axis=2)
    score = -draws
    score[..., [0, 3]] /= 2  # any split of the score between the two
    assert not sx.audit(sx.Sample(draws, score * 3)).passed


def test_float32() -> None:
    assert sx.audit(sx.Sample(X, -X, dtype=np.float32)).passed
    assert sx.audit(sx.Sample(X, X, dtype=np.float32)).fatal[0].kind == "sign"


def test_long_chains_are_averaged_first() -> None:
    draws = np.random.default_rng(0).normal(size=(2, 20_500, 2))
    assert sx.audit(sx.Sample(draws, -draws)).limit.max() < 0.08
    assert sx.audit(sx.Sample(draws, -0.9 * draws)).fatal[0].kind == "tempered"


class TestPrinting:
    def test_two_lines_when_it_passes(self) -> None:
        first, second = repr(sx.audit(sx.Sample(X, -X, diverging=np.zeros((4, 100))))).split("\n")
        assert first == "audit passed: 25 identities hold, no divergences"
        assert second.startswith(
            "The audit would not notice errors in the scores that shift a mean"
        )
        assert second.endswith("check them with sx.audit(sample, log_density=...).")

    def test_divergences_are_told_once(self) -> None:
        diverging = np.zeros((4, 100))
        diverging[1, 3] = 1
        text = repr(sx.audit(sx.Sample(X, -X, diverging=diverging)))
        assert text.count("divergence") == 1 and "remark: 1 of 400 draws" in text

    def test_lines_are_wrapped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "60")
        report = sx.audit(sx.Sample(X, X))
        assert max(map(len, str(report).split("\n"))) <= 60
        assert " ".join(str(report).split()) == " ".join(repr(report).split())
        assert report._repr_html_().startswith("<p>audit failed:</p><p>the scores")

    def test_one_line_when_the_scores_are_verified(self) -> None:
        line = repr(sx.audit(sx.Sample(X, -X, verified=True)))
        assert line == "audit passed: 25 identities hold, the scores agree with the log density"

    def test_error_carries_the_report_in_the_same_words(self) -> None:
        report = sx.audit(sx.Sample(X, X))
        with pytest.raises(sx.AuditError, match=r"wrong sign.*give -scores") as caught:
            report.raise_if_failed()
        assert caught.value.report is report
        assert str(caught.value) == repr(report)
        assert isinstance(caught.value, ValueError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == repr(report)

    def test_nothing_is_raised_when_it_passes(self) -> None:
        sx.audit(sx.Sample(X, -X)).raise_if_failed()


def test_chains_of_four_draws_may_have_their_axes_swapped() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 250, 2))
    draws[:, 154] = draws[:, 153]  # proposals that were rejected
    swapped = draws.swapaxes(0, 1)
    finding = _finding(swapped, "duplicate")
    assert "If there are 4 chains of 250 draws" in finding.message


def test_few_draws_are_inconclusive() -> None:
    draws = np.random.default_rng(0).normal(size=(4, 8, 1))
    report = sx.audit(sx.Sample(draws, -draws))
    assert report.passed and repr(report).startswith("audit inconclusive: ")
    many = np.random.default_rng(0).normal(size=(4, 250, 1))
    assert repr(sx.audit(sx.Sample(many, -many))).startswith("audit passed: ")
