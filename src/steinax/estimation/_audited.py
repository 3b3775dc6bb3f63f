"""The audit of an estimate: scores, chains, and controlled values against plain ones."""

import warnings
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from ..auditing import AuditReport, Finding, Means, audit, critical
from ..data import Sample
from ..data._coordinates import check_moves
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


type AuditMode = Literal["raise", "warn", "off", "unadjusted"]

CHAINS = (
    "constant",
    "repeated",
    "duplicate",
    "stuck",
    "divergences",
    "weights",
)  # not the scores' fault
UNADJUSTED = (
    "unadjusted sampler: part of its bias is removed, and what is left of it is not in the mcse"
)


class AuditWarning(UserWarning):
    """Given where a sample that failed its audit is used nevertheless.

    >>> import warnings
    >>> warnings.simplefilter("error", AuditWarning)  # to have it raised
    >>> warnings.simplefilter("default", AuditWarning)
    """


def check_mode(mode: str) -> None:
    """Refuse what is not one of the modes."""
    if mode not in (modes := get_args(AuditMode.__value__)):
        raise ValueError(f"audit={mode!r}: use one of {', '.join(map(repr, modes))}.")


def audited(sample: Sample, mode: AuditMode) -> AuditReport | None:
    """Audit a sample, and raise or warn where it fails, as the mode says.

    For an estimator of your own; give the report to `with_audit`. A sample that cannot be standardised
    is refused in every mode.

    Args:
        sample: the draws and scores.
        mode: `"raise"`; `"warn"`, to go on with a warning; `"unadjusted"`, to go on where the
            draws are not quite from the target, as those of samplers without a Metropolis step;
            `"off"`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> audited(sx.Sample(x, -x), "raise").passed
    True
    """
    check_mode(mode)
    check_moves(sample)
    if mode == "off":
        return None
    report = audit(sample)
    chains = any(problem.kind in CHAINS for problem in report.fatal)
    _told(report, "raise" if mode == "unadjusted" and chains else mode)
    return report


def with_audit(estimate: Estimate, report: AuditReport | None, mode: AuditMode) -> Estimate:
    """The estimate with its audit, and with a weaker promise where the sampler is not exact.

    Raises or warns, as the mode says, where an estimate contradicts the plain average of its draws.

    Args:
        estimate: such as `Estimate.from_held_out` gives.
        report: what `audited` gave for the same mode.
        mode: as for `audited`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> est = sx.estimate("x", sx.Sample(x, -x), sx.Polynomial(1), audit="off")
    >>> with_audit(est, audited(sx.Sample(x, -x), "warn"), "warn").audit.passed
    True
    """
    if report is not None and mode in ("raise", "warn"):
        against = contradiction(estimate)
        if against is not None:
            report = replace(report, problems=(against, *report.problems))
            _told(report, mode)
    return replace(estimate, audit=report, note=noted(estimate.note, mode))


def _told(report: AuditReport, mode: AuditMode) -> None:
    """Raise or warn where an audit failed."""
    if mode == "raise":
        report.raise_if_failed()
    if mode == "warn" and not report.passed:
        warnings.warn(repr(report), AuditWarning, stacklevel=4)


def noted(note: str, mode: AuditMode) -> str:
    """A note, with the weaker promise."""
    return f"{note}\n{UNADJUSTED}" if mode == "unadjusted" else note
