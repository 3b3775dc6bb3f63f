"""What an audit of the draws means for an estimate from them."""

import warnings
from dataclasses import replace
from typing import Literal, get_args

from ..auditing import AuditReport, audit
from ..data import Sample
from ..data._affine import check_moves
from ._contradiction import contradiction
from ._result import Estimate

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

    Args:
        sample: the draws and scores.
        mode: `"raise"`; `"warn"`, to go on with a warning; `"unadjusted"`, to go on where the
            draws are not quite from the target, as those of samplers without a Metropolis step;
            `"off"`.
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
