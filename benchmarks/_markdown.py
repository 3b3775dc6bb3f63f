"""What pages of results share: tables, provenance, and the files they are written to."""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ._provenance import provenance


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rows_table(rows: Sequence[dict]) -> str:
    """Rows of equal keys as a Markdown table."""
    heads = list(rows[0])
    return table(
        [_shown(head) for head in heads], [[_shown(row[head]) for head in heads] for row in rows]
    )


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", r"\|")


def share(value: float, error: float | None = None) -> str:
    """A share in per cent, with its standard error."""
    return f"{100 * value:.1f}" + ("" if error is None else f" ± {100 * error:.1f}")


def figure(value: float) -> str:
    """A number in about two or three digits."""
    if 100 <= value < 99_999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e")


def origin(about: dict) -> str:
    """The command, the machine and the date."""
    return (
        f"`{about['command']}`, on {about['date']}, one core per worker of {about['cores']} "
        f"({about['cpu']}), Python {about['python']}, steinax {about['steinax']} (source "
        f"{about['source']}), jax {about['jax']}, NumPy {about['numpy']}."
    )


def about(module: str) -> dict:
    """Where the figures of this run come from."""
    told = [*sys.argv[1:]]
    for option in (
        "--out",
        "--cache",
        "--results",
        "--workers",
    ):  # of one machine: they say nothing to another
        if option in told:
            del told[told.index(option) : told.index(option) + 2]
    return {"command": shlex.join(["python", "-m", module, *told])} | provenance()


def report(rows: list[dict], module: str, name: str, as_json: bool, out: Path | None) -> None:
    """Print rows of figures as a table or as JSON, and write both with their origin to a folder.

    Args:
        rows: of equal keys.
        module: that was run.
        name: of the two files.
        as_json: whether to print JSON.
        out: the folder, if any.
    """
    print(json.dumps(rows, indent=1, default=_plain) if as_json else rows_table(rows))
    if out is not None:
        told = about(module)
        write(out, name, f"{origin(told)}\n\n{rows_table(rows)}\n", told, rows)


def known(out: Path, name: str) -> list[dict]:
    """The rows that `write` left in a folder; none if it was never called there."""
    path = out / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []


def write(out: Path, name: str, page: str, about: dict, rows: list[dict]) -> None:
    """The page, and all figures as JSON beside it."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**about, "rows": rows}, indent=1, default=_plain) + "\n"
    for path, content in ((out / f"{name}.json", text), (out / f"{name}.md", page)):
        part = path.with_suffix(path.suffix + ".part")
        part.write_text(content, encoding="utf-8")
        part.replace(path)


def _plain(value: np.generic) -> object:
    """A number of NumPy's as one of Python's."""
    return value.item()
