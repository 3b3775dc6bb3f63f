"""`steinax summary`."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ._files import deliver, read_sample

if TYPE_CHECKING:
    import pandas

    from ..data import Sample


def run(options: Namespace) -> int:
    """Print the table."""
    sample = read_sample(options.files)
    from ..summarising import render, summary

    table: Any = summary(sample, options.variables or None, audit=options.audit)
    deliver(
        options,
        answer=lambda: _answer(table, sample, options),
        rows=lambda: _rows(table),
        table=lambda width: render(table, width),
    )
    return 0


def _rows(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    columns = {str(name): table[name].to_numpy(float) for name in table.columns}
    return [
        {"name": str(name), **{key: values[i] for key, values in columns.items()}}
        for i, name in enumerate(table.index)
    ]


def _answer(table: "pandas.DataFrame", sample: "Sample", options: Namespace) -> dict[str, Any]:
    return {
        "files": options.files,
        "chains": sample.chains,
        "draws": sample.length,
        "parameters": _rows(table),
        "note": table.attrs.get("steinax", ""),
    }


__all__ = ["run"]
