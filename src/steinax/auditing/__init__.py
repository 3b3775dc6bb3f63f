"""Audit of a sample: tests that the scores belong to the draws and that the chains are sound."""

from ._audit import (
    CHAINS as CHAINS,
    DIVERGING as DIVERGING,
    LEAST_DRAWS as LEAST_DRAWS,
    LEAST_LENGTH as LEAST_LENGTH,
    RHAT as RHAT,
    SHARED as SHARED,
    STILL as STILL,
    STUCK as STUCK,
    AuditError,
    AuditMode,
    AuditReport,
    AuditWarning,
    act_on as act_on,
    audit,
    audited,
    axes_swapped as axes_swapped,
    check_mode as check_mode,
)
from ._differences import central_differences
from ._identities import (
    BATCHES as BATCHES,
    CHAIN_ALARM as CHAIN_ALARM,
    DIRECTIONS as DIRECTIONS,
    MATERIAL as MATERIAL,
    NORMAL_QUARTILES as NORMAL_QUARTILES,
    Finding,
    Identities as Identities,
    Means,
    Repair as Repair,
    critical,
    effective_sizes as effective_sizes,
    false_alarms as false_alarms,
    standardised as standardised,
    tested as tested,
)
from ._mistakes import divided as divided, shifted as shifted, sign as sign

__all__ = [
    "AuditError",
    "AuditMode",
    "AuditReport",
    "AuditWarning",
    "Finding",
    "Means",
    "audit",
    "audited",
    "central_differences",
    "critical",
]
