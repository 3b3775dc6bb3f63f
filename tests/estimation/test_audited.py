"""Every estimate is audited: what is refused, what goes on with a warning, what is declared."""

import warnings

import numpy as np
import pytest

import steinax as sx
import targets

TARGET = targets.standard_gaussian(3)
RIGHT = TARGET.sample(0, chains=4, length=250)
WRONG = sx.Sample(RIGHT.draws, -RIGHT.scores)
FAMILY = sx.Polynomial(2)


def _stream(sample: sx.Sample) -> sx.Stream:
    return sx.Stream(lambda: sample.blocks(100), chains=sample.chains)


class TestRaises:
    @pytest.mark.parametrize(
        "use",
        [
            lambda sample: sx.estimate("x", sample),
            lambda sample: sx.estimate("x", sample, FAMILY),
            lambda sample: sx.estimate("x", _stream(sample), FAMILY),
            lambda sample: sx.weigh(sample, FAMILY),
            sx.weigh,
        ],
        ids=["automatic", "family", "stream", "weights", "automatic weights"],
    )
    def test_and_names_the_mistake(self, use) -> None:
        with pytest.raises(sx.AuditError, match="sign") as caught:
            use(WRONG)
        assert caught.value.report.fatal[0].kind == "sign"


READERS = {
    "arrays": lambda x: sx.Stream.from_arrays(x, -x, block=100),
    "function": lambda x: sx.Stream(lambda: sx.Sample(x, -x).blocks(97), chains=len(x)),
}


@pytest.mark.parametrize("chains", [4, 60])
@pytest.mark.parametrize("reader", READERS)
class TestChainsOfAStream:
    """They are audited as chains, every one of them, on the draws at the same places of each."""

    def test_that_are_the_same_are_refused(self, reader, chains) -> None:
        x = np.random.default_rng(0).normal(size=(chains, 1200 // chains + 20, 2))
        found = sx.estimate("x", READERS[reader](x), FAMILY)
        assert found.audit is not None
        assert found.audit.passed
        x[-2] = x[1]
        with pytest.raises(sx.AuditError, match=f"chains 1 and {chains - 2} are the same"):
            sx.estimate("x", READERS[reader](x), FAMILY)

    def test_that_are_stuck_are_refused(self, reader, chains) -> None:
        x = np.random.default_rng(0).normal(size=(chains, 1200 // chains + 20, 2))
        x[-2] = x[-2, 0]
        with pytest.raises(sx.AuditError, match=f"chain {chains - 2} is stuck"):
            sx.estimate("x", READERS[reader](x), FAMILY)


class TestGoesOn:
    def test_right_scores_are_said_to_be_right(self) -> None:
        found = sx.estimate("x", RIGHT, FAMILY)
        assert found.audit is not None
        assert found.audit.passed
        assert "audit passed" in repr(found)

    def test_a_derived_estimate_keeps_the_failed_audit(self) -> None:
        with pytest.warns(sx.AuditWarning):
            found = sx.estimate("x", WRONG, FAMILY, audit="warn")
        name = found.names[0]
        twice = found.derived({"twice": lambda mean: 2 * mean[name]})
        assert twice.audit is found.audit is not None
        assert not twice.audit.passed
        assert "audit failed" in repr(twice)

    def test_with_a_warning(self) -> None:
        with pytest.warns(sx.AuditWarning, match="audit failed"):
            found = sx.estimate("x", WRONG, FAMILY, audit="warn")
        assert "audit failed" in repr(found)

    def test_without_looking(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = sx.estimate("x", WRONG, FAMILY, audit="off")
        assert found.audit is None
        assert "audit" not in repr(found)

    def test_weights_carry_it(self) -> None:
        assert "audit passed" in repr(sx.weigh(RIGHT, FAMILY).mean("x"))


def unadjusted_langevin(step: float, chains: int, length: int, thin: int = 10) -> sx.Sample:
    """On a standard Gaussian: stationary with the variance 1 / (1 - step / 2), not 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(chains, 3)) / np.sqrt(1 - step / 2)
    kept = []
    for _ in range(length):
        for _ in range(thin):
            x = x - step * x + np.sqrt(2 * step) * rng.normal(size=x.shape)
        kept.append(x)
    draws = np.stack(kept, axis=1)
    return sx.Sample(draws, -draws)


class TestUnadjusted:
    SAMPLE = unadjusted_langevin(0.4, 4, 1000)
    SQUARES = staticmethod(lambda x: x**2)

    def test_is_refused_unless_declared(self) -> None:
        with pytest.raises(sx.AuditError, match="unadjusted"):
            sx.estimate(self.SQUARES, self.SAMPLE, FAMILY)

    def test_degree_2_removes_the_bias_and_says_what_it_does_not_promise(self) -> None:
        """A quarter too large without; nothing is left with it, the target being Gaussian."""
        found = sx.estimate(self.SQUARES, self.SAMPLE, FAMILY, audit="unadjusted")
        shown = " ".join(repr(found).split())
        assert "audit failed" not in shown and "expected of an unadjusted sampler" in shown
        assert np.all(found.plain_value - 1 > 0.1)
        np.testing.assert_allclose(found.value, 1.0, atol=1e-9)
        assert "the remaining bias is not in the mcse" in found.note

    def test_stuck_chains_are_refused_nevertheless(self) -> None:
        draws = self.SAMPLE.draws.copy()
        draws[1] = draws[0]
        with pytest.raises(sx.AuditError, match="chain"):
            sx.estimate("x", sx.Sample(draws, -draws), FAMILY, audit="unadjusted")
