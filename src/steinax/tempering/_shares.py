"""Shares of the log evidence: one estimate for each temperature, and their sum."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._show import describe
from .._types import AnyArray
from ..estimation import Estimate
from ..estimation._result import ARRAYS
from ._methods import AbstractMethod
from ._result import Evidence

CURVED = 0.5  # of an error of a share, beyond which its linear part says little
TOO_CURVED = (
    "a share is a logarithm that is too far from linear within its error; give more draws or more "
    "temperatures, or use ThermodynamicIntegration()"
)


def moved(linear: Estimate, value: float, bend: float) -> Estimate:
    """The share of a temperature from its linear part, its value at the plain means and its bend."""
    curved = not abs(bend) <= CURVED + linear.mcse or not linear.mcse <= CURVED
    bend = bend if np.isfinite(bend) else 0.0
    error = np.asarray(np.nan) if curved else linear.mcse
    return replace(
        linear,
        value=np.asarray(value + linear.value + bend),
        plain_value=np.asarray(value + linear.plain_value),
        mcse=error,
        reason=TOO_CURVED if curved else linear.reason,
    )


def nothing(like: Estimate) -> Estimate:
    """The share of a temperature that adds nothing."""
    zeros = {field: np.zeros_like(getattr(like, field)) for field in _ZEROS}
    return replace(like, worth=np.asarray(1.0), chosen=("nothing",), candidates=None, **zeros)


_ZEROS = ("value", "mcse", "batches", "plain_value", "plain_mcse", "plain_batches")


def summed(
    temperatures: AnyArray,
    shares: Sequence[Estimate],
    log_likelihood: Sequence[Estimate],
    exchanged: bool,
    quadrature: float,
    method: AbstractMethod,
) -> Evidence:
    """The log evidence: values are added, and the variances of independent temperatures."""
    each = beside_each_other(shares, temperatures)
    error, freedom = _error(each.mcse, each.freedom, each.batches, exchanged)
    plain, plain_freedom = _error(
        each.plain_mcse, each.plain_freedom, each.plain_batches, exchanged
    )
    return Evidence(
        value=np.asarray(each.value.sum()),
        mcse=error,
        plain_value=np.asarray(each.plain_value.sum()),
        plain_mcse=plain,
        worth=np.asarray((plain / error) ** 2),
        freedom=freedom,
        plain_freedom=plain_freedom,
        quadrature_error=np.asarray(quadrature),
        temperatures=np.asarray(temperatures),
        shares=each,
        log_likelihood=beside_each_other(log_likelihood, temperatures),
        method=describe(method),
        reason=each.reason,
    )


def beside_each_other(estimates: Sequence[Estimate], temperatures: AnyArray) -> Estimate:
    """One estimate with a row for each temperature, each from its own draws."""
    arrays: dict[str, Any] = {field: _stacked(estimates, field) for field in ARRAYS}
    names = tuple(f"t = {t:.4g}" for t in temperatures)
    chosen = tuple(one.chosen[0] for one in estimates)
    reason = next((one.reason for one in estimates if one.reason is not None), None)
    return Estimate(names=names, chosen=chosen, note=estimates[0].note, reason=reason, **arrays)


def _stacked(estimates: Sequence[Estimate], field: str) -> np.ndarray:
    """One array of all estimates; batches are cut to the fewest that any has."""
    parts = [np.asarray(getattr(one, field)) for one in estimates]
    fewest = min(len(part) for part in parts) if parts[0].ndim else 0
    return np.stack([part[:fewest] if part.ndim else part for part in parts], axis=-1)


def _error(
    error: AnyArray, freedom: AnyArray, batches: AnyArray, exchanged: bool
) -> tuple[AnyArray, AnyArray]:
    """The standard error of a sum, and its degrees of freedom by the rule of Welch."""
    variances = error**2
    total = variances.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = total**2 / np.sum(variances**2 / freedom)
    if exchanged:
        summed = batches.sum(axis=1)
        apart = (batches**2).sum()
        total = total * (summed**2).sum() / apart
    return np.asarray(np.sqrt(total)), np.asarray(freedom)
