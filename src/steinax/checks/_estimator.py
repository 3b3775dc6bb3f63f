from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..data import Sample, integrands
from ..estimation import Estimate
from ._bad_input import Input, draws, inputs
from ._check import Check, CheckFailed, expect, owner
from ._outcome import outcome
from ._settings import same_bits

type Estimator = Callable[[Any, Sample], Any]
ADVICE = (
    "raise a ValueError or TypeError that says what is wrong and what to do next, or give NaN with a "
    "`reason`; a number needs a standard error."
)


@dataclass(frozen=True)
class EstimatorCase:
    """A function of integrands and a sample, and one input to try."""

    function: Estimator
    given: Input


def estimator_checks(function: Estimator) -> Iterator[tuple[str, Check]]:
    """A check for each odd or bad input of the table."""
    for given in inputs():
        case = EstimatorCase(function, given)
        yield given.name, Check(owner(_plain(function)), given.name, answers_honestly, case, ADVICE)


def _plain(function: Any) -> Any:
    return _plain(function.func) if isinstance(function, partial) else function


def answers_honestly(case: EstimatorCase) -> None:
    """An error that helps, NaN with a reason, or a number with an error bar; never a silent number."""
    made = outcome(case.given.sample)
    if isinstance(made, Exception):
        expect(case.given.refuse, f"it was refused, which it need not be: {made}")
        return
    before = np.array(made.draws), np.array(made.scores)
    result = outcome(lambda: case.function(case.given.f, made))
    expect(same_bits(before, (made.draws, made.scores)), "it wrote into the sample")
    if isinstance(result, Exception):
        expect(not case.given.same, f"it was refused, which it need not be: {result}")
        return
    expect(not case.given.refuse, f"it gave an answer: {result}")
    if isinstance(result, Estimate):
        check_plain(result, case.given.f, made)
    if case.given.same:
        usual = case.function(case.given.f, Sample(draws(), -draws()))
        expect(same_bits(result, usual), "the answer is another than for the usual array")


def check_plain(found: Estimate, f: Any, sample: Sample) -> None:
    """The plain columns are NumPy's average and ArviZ's standard error."""
    from arviz_stats.base.array import array_stats

    values = np.asarray(integrands(f, sample).values, np.float64)
    mean, size = values.mean(axis=(0, 1)), np.abs(values).max(axis=(0, 1))
    off = np.abs(found.plain_value - mean)
    if np.any(off > 1e-10 * size):
        raise CheckFailed(f"the plain average is {found.plain_value}, NumPy's is {mean}")
    moving = np.ptp(values, axis=(0, 1)) > 1e-12 * size
    if sample.length < 4 or not moving.any():
        return
    unit = np.where(size > 0, size, 1.0)
    options = {"chain_axis": 0, "draw_axis": 1, "method": "mean"}
    wanted = unit * array_stats.mcse(values / unit, **options)  # type: ignore[attr-defined]
    near = np.abs(found.plain_mcse - wanted) <= 1e-6 * wanted
    if np.any(moving & np.isfinite(wanted) & ~near):
        raise CheckFailed(f"the plain error is {found.plain_mcse}, ArviZ's is {wanted}")
