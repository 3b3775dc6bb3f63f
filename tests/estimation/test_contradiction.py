"""An estimate that contradicts the plain average of the same draws is refused."""

import numpy as np
import pytest
from benchmarks.trust._scored import RIGHT, chains
from benchmarks.trust._wrong import WRONG

import steinax as sx

SUBTLE = "log Jacobian missing, sd 0.5"
SEEDS = [seed for seed in range(12)]


def _sample(seed: int) -> sx.Sample:
    wrong = WRONG[SUBTLE]
    return sx.Sample(*wrong.make(chains(seed, (4, 50, wrong.dim), wrong.rho))[:2])


def _unseen() -> sx.Sample:
    """A sample whose audit passes and whose estimate is off by more than five plain standard errors."""
    for seed in SEEDS:
        sample = _sample(seed)
        if sx.audit(sample).passed:
            est = sx.estimate("x", sample, sx.Polynomial(1), audit="off")
            if np.max(np.abs(est.value - est.plain_value) / est.plain_mcse) > 5:
                return sample
    raise AssertionError("no seed has what is tested here")


def test_is_refused_though_the_audit_passes() -> None:
    sample = _unseen()
    with pytest.raises(
        sx.AuditError, match=r"contradicts the plain average .* standard errors apart"
    ) as caught:
        sx.estimate("x", sample, sx.Polynomial(1))
    assert caught.value.report.fatal[0].kind == "contradiction"
    assert caught.value.report.fatal[0].columns == ("x[0]",)


def test_every_way_to_an_estimate_looks() -> None:
    sample = _unseen()
    names = sx.Sample(sample.draws, sample.scores, ["a", "b", "c", "d"])
    stream = sx.Stream.from_arrays(sample.draws, sample.scores)
    for ask in (
        lambda: sx.estimate("a", names),
        lambda: sx.summary(names),
        lambda: sx.weigh(names, sx.Polynomial(2)),
        lambda: sx.estimate("x", stream),
    ):
        with pytest.raises(sx.AuditError, match="contradicts"):
            ask()


def test_goes_on_with_a_warning() -> None:
    sample = _unseen()
    with pytest.warns(sx.auditing.AuditWarning, match="contradicts"):
        est = sx.estimate("x", sample, sx.Polynomial(1), audit="warn")
    assert est.audit is not None and not est.audit.passed
    for mode in ("off", "unadjusted"):
        sx.estimate("x", sample, sx.Polynomial(1), audit=mode)


@pytest.mark.parametrize("target", RIGHT)
def test_right_scores_are_not_refused(target: str) -> None:
    """Heavy tails included, where a plain average is often far below the expectation.

    The rate of false alarms is 1 in 20,000 for each estimate, so these fail once in 200 runs of all.
    """
    for seed in range(6):
        x, score = RIGHT[target](chains(seed, (4, 50, 5), 0.3))
        functions = {"x": x, "square": x**2, "exp": np.exp(np.clip(x, -30, 30))}
        sx.estimate(functions, sx.Sample(x, score), sx.Polynomial(2))
