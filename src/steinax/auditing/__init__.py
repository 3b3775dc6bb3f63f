"""Whether scores belong to their draws, chains are in order, and tails are light enough."""

from ._audit import audit
from ._errors import Means
from ._identities import critical
from ._report import AuditError, AuditReport, Finding
from ._tails import heavy, pareto_khat

__all__ = [
    "AuditError",
    "AuditReport",
    "Finding",
    "Means",
    "audit",
    "critical",
    "heavy",
    "pareto_khat",
]
