"""Whether an estimate and the plain average of the same draws can both be right."""

import numpy as np

from ..auditing import Finding, Means, critical
from ._result import Estimate

FALSE_ALARM = 5e-5  # of all integrands of an estimate together


def contradiction(estimate: Estimate) -> Finding | None:
    r"""What to say where an estimate contradicts the plain average of the same draws.

    Both estimate one number, so their difference has mean zero. It is tested for every integrand with
    Student's quantiles and the degrees of freedom of the plain average, wider on the side where a long
    tail may have been missed. Its error is taken as if the two were independent: where control variates
    leave nothing that is the plain one, and where a fit is unstable their correlation is not to be trusted.
    """
    apart = np.atleast_1d(estimate.plain_value - estimate.value)
    error = np.hypot(estimate.plain_mcse, np.nan_to_num(estimate.mcse, nan=0.0)).reshape(-1)
    freedom = np.atleast_1d(estimate.plain_freedom)
    found = Means(apart, error, freedom, _skewness(estimate.plain_batches))
    limit, _ = critical(found, np.full(apart.shape, FALSE_ALARM / apart.size))
    with np.errstate(invalid="ignore", divide="ignore"):
        strength = np.nan_to_num(np.abs(apart) / (limit * error), nan=0.0)
    worst = int(strength.argmax())
    if not strength[worst] > 1.0:
        return None
    value, plain, plain_error = (
        np.atleast_1d(one)[worst]
        for one in (estimate.value, estimate.plain_value, estimate.plain_mcse)
    )
    message = (
        f"the estimate of {estimate.names[worst]}, {value:.6g}, contradicts the plain average of the same "
        f"draws, {plain:.6g} +- {plain_error:.2g}: they are {abs(apart[worst]) / error[worst]:.1f} standard "
        "errors apart. The scores are wrong in a way that the identities are too weak to name: look for a "
        "missing Jacobian or prior, a boundary, or other data, and compare the scores with finite "
        "differences by steinax.audit(sample, log_density=...). To see both numbers give "
        'audit="warn".'
    )
    return Finding("contradiction", message, columns=(estimate.names[worst],))


def _skewness(batches: np.ndarray) -> np.ndarray:
    """Of the mean of the series that was cut into batches, (k,)."""
    return (_standardised(batches) ** 3).mean(axis=0) / np.sqrt(len(batches))


def _standardised(batches: np.ndarray) -> np.ndarray:
    """Batches of mean square 1, (batch, k); 0 where a series never changes."""
    columns = np.asarray(batches).reshape(len(batches), -1)
    largest = np.abs(columns).max(axis=0)  # squares of what is very large or small are not numbers
    columns = columns / np.where(largest > 0, largest, 1.0)
    size = np.sqrt((columns**2).mean(axis=0))
    return columns / np.where(size > 0, size, 1.0)
