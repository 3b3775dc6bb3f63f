"""One posterior that is not as the others: its audit, and its estimate by itself."""

import numpy as np

from .._types import AnyArray
from ..auditing import audit
from ..data import Integrands, Sample
from ..estimation import estimate
from ..estimation._audited import CHAINS, AuditMode
from ..families import AbstractFamily
from ._slices import NUMBERS
from ._table import OK

type Problem = tuple[str, str]  # a status and its reason

FAILED = "failed"
NOTHING: Problem = (OK, "")


def judged(sample: Sample, mode: AuditMode) -> tuple[Problem, bool]:
    """What the audit finds, as a status and its reason, and whether it forbids an estimate."""
    if mode == "off":
        return NOTHING, False
    report = audit(sample)
    if report.passed:
        return NOTHING, False
    chains = any(finding.kind in CHAINS for finding in report.fatal)
    if mode == "unadjusted" and not chains:
        return NOTHING, False
    worst = report.fatal[0]
    return (worst.kind, worst.message), mode != "warn"


def alone(
    wanted: Integrands, sample: Sample, family: AbstractFamily, mode: AuditMode
) -> tuple[AnyArray, Problem]:
    """The numbers of one posterior, (number, k), and its status: whatever goes wrong is its own."""
    nothing = np.full((len(NUMBERS), len(wanted.names)), np.nan)
    try:
        problem, refused = judged(sample, mode)
        if refused:
            return nothing, problem
        found = estimate(wanted, sample, family, audit="off")
    except Exception as error:
        return nothing, failure(error)
    return np.stack([getattr(found, number) for number in NUMBERS]), problem


def failure(error: Exception, status: str = FAILED) -> Problem:
    """An error as a status and its reason."""
    return status, f"{type(error).__name__}: {error}"
