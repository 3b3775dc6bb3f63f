"""Checks of the outcome of a call: a result with an error bar, NaN with a reason, or a helpful error."""

import dis
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Sample, integrands
from ..estimation import Estimate, WeightedDraws
from ..fitting import ControlVariate
from ._bad_input import Input, gaussian_draws, inputs
from ._check import Check, CheckFailed, expect, owner, same_bits

PACKAGE = str(Path(__file__).parents[1])
SHORTEST = 20  # fewest characters of a message that says what is wrong and what to do
ROUNDING = np.finfo(np.float64).eps


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call or its helpful error; raise on a warning or any other error.

    An error is helpful if steinax raised it on purpose: a ValueError or TypeError whose message says
    what is wrong and what to do. Errors of a user's own integrand are passed on, with a note.

    >>> import steinax as sx
    >>> type(outcome(lambda: sx.Sample([1.0, 2.0], [1.0, 2.0])))
    <class 'ValueError'>
    >>> outcome(lambda: 1 / 0)
    Traceback (most recent call last):
        ...
    steinax.checks._check.CheckFailed: a bare ZeroDivisionError: division by zero
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = call()
        except Warning as error:
            raise CheckFailed(f"a {type(error).__name__}, not an error: {error}") from error
        except Exception as error:
            check_named(error)
            return error
    check_result(result)
    return result


def check_named(error: Exception) -> None:
    """Raise CheckFailed unless an error was raised on purpose and says what to do."""
    what = f"a bare {type(error).__name__}: {str(error)[:300]}"
    if any("came from the integrand" in note for note in getattr(error, "__notes__", ())):
        return  # an error of the user's own function
    if type(error).__module__.startswith(("jaxtyping", "beartype")):
        return  # type checks that the caller switched on
    on_purpose = _raised_on_purpose(error)
    if not on_purpose or not isinstance(error, (ValueError, TypeError)):
        raise CheckFailed(what) from error
    if len(str(error)) < SHORTEST:
        raise CheckFailed(f"{what}: the message says too little") from error


def _raised_on_purpose(error: Exception) -> bool:
    """Return whether an error comes from a `raise` statement of steinax, not from a failing call."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return False
    code = traceback.tb_frame.f_code
    raised = code.co_code[traceback.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and code.co_filename.startswith(PACKAGE)


def check_result(result: Any) -> None:
    """Raise CheckFailed if a result has a number with neither an error bar nor a reason."""
    try:
        if isinstance(result, Estimate):
            check_honest(result)
        elif isinstance(result, WeightedDraws):
            check_weights(result)
        elif isinstance(result, ControlVariate):
            expect(np.all(np.isfinite(result.intercept)), f"an intercept of {result.intercept}")
    except AssertionError as error:
        raise CheckFailed(str(error)) from error


def check_honest(result: Estimate) -> None:
    """Check that each number is finite with a standard error above rounding, or NaN with a reason."""
    for name in ("value", "plain_value"):
        number, error = getattr(result, name), getattr(result, _ERRORS[name])
        finite = np.isfinite(number) & np.isfinite(error)
        for i in np.flatnonzero(~np.atleast_1d(finite)):
            shown = f"{result.names[i]}: {name} is {number[i]} with a standard error of {error[i]}"
            expect(result.reason, f"{shown}, and no reason is given")
            expect(not np.isinf(number[i]) and not np.isinf(error[i]), f"{shown}")
        floor = ROUNDING * np.abs(np.where(finite, number, 0.0))
        expect(
            np.all(~finite | ((error >= floor) & (error > 0))),
            f"{name} has a standard error below rounding: {error}",
        )
    known = np.isfinite(result.mcse)
    expect(np.all(~known | (result.ess > 0)), f"an effective sample size of {result.ess}")
    expect(np.all(~known | ~np.isinf(result.worth)), f"worth {result.worth}")


_ERRORS = {"value": "mcse", "plain_value": "plain_mcse"}


def check_weights(draws: WeightedDraws) -> None:
    """Check that weights are finite and sum to one."""
    expect(np.all(np.isfinite(draws.weights)), "some weights are NaN or infinite")
    total = float(draws.weights.sum())
    expect(abs(total - 1) < 1e-6, f"the weights sum to {total}")


type Estimator = Callable[[Any, Sample], Any]
ADVICE = (
    "raise a ValueError or TypeError that says what is wrong and what to do next, or give NaN with a "
    "`reason`; a number needs a standard error."
)


@dataclass(frozen=True)
class EstimatorCase:
    """A function of integrands and a sample, and one input to check it on."""

    function: Estimator
    given: Input


def estimator_checks(function: Estimator) -> Iterator[tuple[str, Check]]:
    """Yield a check for each unusual or invalid input of the table."""
    for given in inputs():
        case = EstimatorCase(function, given)
        yield given.name, Check(owner(_plain(function)), given.name, answers_honestly, case, ADVICE)


def _plain(function: Any) -> Any:
    return _plain(function.func) if isinstance(function, partial) else function


def answers_honestly(case: EstimatorCase) -> None:
    """The outcome is a helpful error, NaN with a reason, or a number with an error bar."""
    sample = outcome(case.given.sample)
    if isinstance(sample, Exception):
        expect(case.given.refuse, f"it was refused without need: {sample}")
        return
    before = np.array(sample.draws), np.array(sample.scores)
    result = outcome(lambda: case.function(case.given.f, sample))
    expect(same_bits(before, (sample.draws, sample.scores)), "it wrote into the sample")
    if isinstance(result, Exception):
        expect(not case.given.same, f"it was refused without need: {result}")
        return
    expect(not case.given.refuse, f"it gave an answer: {result}")
    if isinstance(result, Estimate):
        check_plain(result, case.given.f, sample)
    if case.given.same:
        expected = case.function(case.given.f, Sample(gaussian_draws(), -gaussian_draws()))
        expect(same_bits(result, expected), "the answer differs from that for ordinary arrays")


def check_plain(result: Estimate, f: Any, sample: Sample) -> None:
    """Check that the plain columns are NumPy's average and ArviZ's standard error."""
    from arviz_stats.base.array import array_stats

    values = np.asarray(integrands(f, sample).values, np.float64)
    mean, size = values.mean(axis=(0, 1)), np.abs(values).max(axis=(0, 1))
    difference = np.abs(result.plain_value - mean)
    if np.any(difference > 1e-10 * size):
        raise CheckFailed(f"the plain average is {result.plain_value}, NumPy's is {mean}")
    varies = np.ptp(values, axis=(0, 1)) > 1e-12 * size
    if sample.length < 4 or not varies.any():
        return
    unit = np.where(size > 0, size, 1.0)
    options = {"chain_axis": 0, "draw_axis": 1, "method": "mean"}
    expected = unit * array_stats.mcse(values / unit, **options)  # type: ignore[attr-defined]
    near = np.abs(result.plain_mcse - expected) <= 1e-6 * expected
    if np.any(varies & np.isfinite(expected) & ~near):
        raise CheckFailed(f"the plain error is {result.plain_mcse}, ArviZ's is {expected}")
