"""An estimate that contradicts the plain average of its draws is refused where the audit passes."""

import numpy as np
import pytest

import steinax as sx

X = np.random.default_rng(0).normal(size=(4, 250, 3))
ERROR = (X[..., 1] * X[..., 2])[..., None] * [1.0, 0.0, 0.0]
WRONG = sx.Sample(X, -X + 0.7 * ERROR)  # of mean zero with every function that the audit tests
F = {"square": X[..., 0] ** 2, "product": X.prod(axis=-1)}


def test_right_scores_contradict_nothing() -> None:
    found = sx.estimate(F, sx.Sample(X, -X))
    assert found.audit is not None
    assert found.audit.passed


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [0.0, 1e-110])
def test_an_integrand_that_hardly_changes_contradicts_nothing(size: float) -> None:
    values = np.stack([size * X[..., 0], X[..., 1]], axis=-1)
    found = sx.estimate(values, sx.Sample(X, -X), sx.Polynomial(1))
    assert found.audit is not None
    assert found.audit.passed


def test_a_contradiction_is_refused() -> None:
    assert sx.audit(WRONG).passed
    with pytest.raises(sx.AuditError, match="the estimate of product") as caught:
        sx.estimate(F, WRONG, sx.Polynomial(3))
    (finding,) = caught.value.report.fatal
    assert (finding.kind, finding.columns) == ("contradiction", ("product",))


def test_a_contradiction_is_in_the_report_of_an_estimate_that_goes_on() -> None:
    with pytest.warns(sx.AuditWarning, match="contradicts the plain average"):
        found = sx.estimate(F, WRONG, sx.Polynomial(3), audit="warn")
    assert found.audit is not None
    assert not found.audit.passed
    assert abs(found.value[1] - found.plain_value[1]) > 6 * found.plain_mcse[1]
