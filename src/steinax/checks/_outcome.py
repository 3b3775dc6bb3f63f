"""What may come of a call: a result with an error bar, NaN with a reason, or an error that helps."""

import dis
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..estimation import Estimate, WeightedDraws
from ..fitting import ControlVariate
from ._check import CheckFailed, expect

PACKAGE = str(Path(__file__).parents[1])
SHORTEST = 20  # characters of a message that says what is wrong and what to do
ROUNDING = np.finfo(np.float64).eps


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error, where that is one which helps; warnings are faults.

    An error helps if steinax raised it on purpose: a ValueError or TypeError whose message says what
    is wrong and what to do. What a user's own integrand raises is passed on, with a note.

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
    """Raise unless an error was raised on purpose and says what to do."""
    what = f"a bare {type(error).__name__}: {str(error)[:300]}"
    if any("came from the integrand" in note for note in getattr(error, "__notes__", ())):
        return  # the user's own
    if type(error).__module__.startswith(("jaxtyping", "beartype")):
        return  # switched on by the caller, and more exact than we are
    ours = _raised_on_purpose(error)
    if not ours or not isinstance(error, (ValueError, TypeError)):
        raise CheckFailed(what) from error
    if len(str(error)) < SHORTEST:
        raise CheckFailed(f"{what}: the message says too little") from error


def _raised_on_purpose(error: Exception) -> bool:
    """Whether a `raise` of steinax raised it, and not a call that went wrong on the way."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    code = last.tb_frame.f_code
    raised = code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    return raised and code.co_filename.startswith(PACKAGE)


def check_result(result: Any) -> None:
    """Raise if a number came back without an error bar or a reason."""
    try:
        if isinstance(result, Estimate):
            check_honest(result)
        elif isinstance(result, WeightedDraws):
            check_weights(result)
        elif isinstance(result, ControlVariate):
            expect(np.all(np.isfinite(result.intercept)), f"an intercept of {result.intercept}")
    except AssertionError as error:
        raise CheckFailed(str(error)) from error


def check_honest(found: Estimate) -> None:
    """Each number is finite and has a standard error above rounding, or is NaN with a reason."""
    for name in ("value", "plain_value"):
        number, error = getattr(found, name), getattr(found, _ERRORS[name])
        whole = np.isfinite(number) & np.isfinite(error)
        for i in np.flatnonzero(~np.atleast_1d(whole)):
            shown = f"{found.names[i]}: {name} is {number[i]} with a standard error of {error[i]}"
            expect(found.reason, f"{shown}, and no reason is given")
            expect(not np.isinf(number[i]) and not np.isinf(error[i]), f"{shown}")
        floor = ROUNDING * np.abs(np.where(whole, number, 0.0))
        expect(
            np.all(~whole | ((error >= floor) & (error > 0))),
            f"{name} has a standard error below rounding: {error}",
        )
    fine = np.isfinite(found.mcse)
    expect(np.all(~fine | (found.ess > 0)), f"an effective sample size of {found.ess}")
    expect(np.all(~fine | ~np.isinf(found.worth)), f"worth {found.worth}")


_ERRORS = {"value": "mcse", "plain_value": "plain_mcse"}


def check_weights(found: WeightedDraws) -> None:
    """Weights are finite and sum to one."""
    expect(np.all(np.isfinite(found.weights)), "some weights are NaN or infinite")
    total = float(found.weights.sum())
    expect(abs(total - 1) < 1e-6, f"the weights sum to {total}")
