"""Whatever sample and integrand Hypothesis finds, the answer is honest.

`STEINAX_FULL=1 pytest tests/checks/test_hypothesis.py` runs 10,000 examples; CI two hundred.
"""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import steinax as sx
from full import FULL
from steinax.checks import strategies
from steinax.checks._estimator import EstimatorCase, answers_honestly

FEW: strategies.Shapes = ((2, 8, 2), (4, 3, 1))  # in the fast set: each compiles anew


def polynomial(degree: int, split: sx.estimation.AbstractSplit | None = None):
    return lambda f, sample: sx.estimate(f, sample, sx.Polynomial(degree), split=split)


FUNCTIONS = {
    "degree 1": polynomial(1),
    "degree 2": polynomial(2),
    "in-sample": polynomial(1, sx.InSample()),
    "held out": polynomial(1, sx.HoldOut(0.5)),
    "four folds": polynomial(1, sx.CrossFit(4)),
    "weights": lambda f, sample: sx.weigh(sample, sx.Polynomial(1)).mean(f),
    "fit": lambda f, sample: sx.fit(f, sample, sx.Polynomial(1)),
}


def _settings(examples: int):
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@_settings(40)
@given(strategies.inputs(FEW))
def test_a_few(case) -> None:
    answers_honestly(EstimatorCase(FUNCTIONS["degree 1"], case))


@pytest.mark.slow
@_settings(9_000 if FULL else 150)
@given(strategies.inputs(), st.sampled_from(sorted(FUNCTIONS)))
def test_any_input_with_a_family(case, name: str) -> None:
    answers_honestly(EstimatorCase(FUNCTIONS[name], case))


@pytest.mark.slow
@_settings(900 if FULL else 15)
@given(strategies.inputs([(2, 20, 1)]))
def test_any_input_with_the_automatic_choice(case) -> None:
    answers_honestly(EstimatorCase(sx.estimate, case))
