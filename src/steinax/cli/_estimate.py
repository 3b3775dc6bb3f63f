"""`steinax estimate`."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ._audit import report_as_dict
from ._files import deliver, read_sample
from ._functions import load_functions

if TYPE_CHECKING:
    from ..data import Sample
    from ..estimation import Estimate

COLUMNS = (
    *("value", "mcse", "plain_value", "plain_mcse", "worth"),
    *("ess", "rhat", "plain_ess", "plain_rhat", "freedom", "plain_freedom"),
)


def run(options: Namespace) -> int:
    """Print the expectations."""
    if not options.functions and not options.variables:
        raise ValueError(
            "nothing to estimate: name a function, as --fn module:function, or a variable, as --var tau. "
            "For every parameter use steinax summary."
        )
    functions: dict[str, Any] = dict(load_functions(options.functions))
    sample = read_sample(options.files)
    from ..estimation import estimate
    from ..estimation._result import fitted

    wanted = {**{name: name for name in options.variables}, **functions}
    found = estimate(wanted, sample, audit=options.audit)
    deliver(
        options,
        answer=lambda: _answer(found, sample, options),
        rows=lambda: _rows(found),
        table=lambda width: fitted(found, width, more="--json or --csv"),
    )
    return 0


def _rows(found: "Estimate") -> list[dict[str, Any]]:
    lower, upper = found.interval().T
    arrays = {column: getattr(found, column) for column in COLUMNS}
    arrays |= {"lower": lower, "upper": upper}
    return [
        {"name": name, **{key: array[i] for key, array in arrays.items()}, "chosen": chosen}
        for i, (name, chosen) in enumerate(zip(found.names, found.chosen, strict=True))
    ]


def _answer(found: "Estimate", sample: "Sample", options: Namespace) -> dict[str, Any]:
    report = found.audit
    return {
        "files": options.files,
        "chains": sample.chains,
        "draws": sample.length,
        "estimates": _rows(found),
        "note": found.note,
        "reason": found.reason,
        "audit": None if report is None else report_as_dict(report, sample),
    }


__all__ = ["run"]
