from ..._pinned import run
from . import __doc__ as description
from ._command import tabulated
from ._page import page


def row_of(settings: dict) -> dict:
    """Check and sample in one process, estimate in another: each starts afresh, on one core."""
    (checked,) = run("posteriors.chains._run", settings)
    (row,) = run("posteriors.chains._estimates", settings)
    print(
        settings["name"], {key: row[key] for key in ("gain", "calibration", "seconds")}, flush=True
    )
    return checked | row


if __name__ == "__main__":
    tabulated("benchmarks.posteriors.chains", description, "chains", row_of, page)
