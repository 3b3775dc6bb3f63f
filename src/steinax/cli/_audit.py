"""`steinax audit`."""

from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ._files import as_json, format_of, read_sample, write

if TYPE_CHECKING:
    from ..auditing import AuditReport
    from ..data import Sample


def run(options: Namespace) -> int:
    """Print the report; 1 if the audit failed."""
    from ..auditing import audit

    sample = read_sample(options.files)
    report = audit(sample)
    if format_of(options) == "json":
        write(as_json({"files": options.files, **report_as_dict(report, sample)}), options)
    else:
        write(repr(report), options)
    return 0 if report.passed else 1


def report_as_dict(report: "AuditReport", sample: "Sample") -> dict[str, Any]:
    """All that a report holds, limits by the names of the dimensions."""
    return {
        "passed": report.passed,
        "problems": [asdict(problem) for problem in report.problems],
        "checked": report.checked,
        "strength": report.strength,
        "divergences": report.divergences,
        "limit": dict(zip(sample.names, report.limit, strict=True)),
        "limit_squares": dict(zip(sample.names, report.limit_squares, strict=True)),
    }


__all__ = ["report_as_dict", "run"]
