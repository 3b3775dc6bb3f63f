"""matplotlib for pages: imported by a report, not by every worker, and never with a window."""

from typing import Any


def pyplot() -> Any:
    """`matplotlib.pyplot`, drawing to files."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
