"""Whether scores belong to their draws, chains are in order, and tails are light enough."""

from ._audit import audit, heavy, may_lack_mean, pareto_khat
from ._differences import central_differences
from ._identities import Means, critical
from ._report import AuditError, AuditReport, Finding

__all__ = [
    "AuditError",
    "AuditReport",
    "Finding",
    "Means",
    "audit",
    "central_differences",
    "critical",
    "heavy",
    "may_lack_mean",
    "pareto_khat",
]
