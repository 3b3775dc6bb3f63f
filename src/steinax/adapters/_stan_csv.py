"""The CSV files of CmdStan: comments with the settings, a header, rows; more than one table a file."""

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from ._stan_names import diagnostic_size

_SETTING = re.compile(rb"#\s*(\w+) = (.*?)\s*(\(Default\))?\s*$")
_HEADER = re.compile(rb"(?!nan\b|inf\b)[A-Za-z]", re.IGNORECASE)
_EXPONENT = re.compile(rb"[eE]")
SEEN = 50  # rows in which digits are counted
EXACT = 15  # digits of a float64
BLURRED = 1e-3  # of a column's spread: what rounding may hide before it is told


@dataclass(frozen=True)
class Table:
    """One table of a file, its numbers still text.

    Args:
        path: the file.
        settings: what CmdStan was called with, from the comments above the header; the data file is
            under `data file`.
        columns: the names in the header.
        rows: one line for each draw.
    """

    path: Path
    settings: Mapping[str, str]
    columns: tuple[str, ...]
    rows: tuple[bytes, ...]

    @property
    def dim(self) -> int:
        """The number of parameters if this is a diagnostic table, else 0."""
        return diagnostic_size(self.columns)

    @property
    def chain(self) -> int:
        """The chain's number, `id` in CmdStan's settings."""
        return self.number("id")

    @property
    def width(self) -> int:
        """The number of leading columns that are the sampler's own: `lp__`, `divergent__` and so on."""
        return sum(column.endswith("__") for column in self.columns)

    def number(self, setting: str) -> int:
        """A setting that is a whole number; true is 1, as older versions write it."""
        text = self.settings.get(setting, "").lower()
        try:
            return {"true": 1, "false": 0}[text] if text in {"true", "false"} else int(text)
        except ValueError:
            raise ValueError(
                f"{self.path} does not say `{setting} =` in the comments above its table: give the file as "
                "CmdStan wrote it, with all its comments."
            ) from None

    def values(self) -> np.ndarray:
        """The numbers, (draw, column), without the draws of the warm-up."""
        import pandas

        thin = self.number("thin")
        warmup = ceil(self.number("num_warmup") / thin) if self.number("save_warmup") else 0
        self._expect_rows(warmup + ceil(self.number("num_samples") / thin))
        text = io.BytesIO(b"\n".join(self.rows[warmup:]))
        return pandas.read_csv(text, header=None, dtype=np.float64).to_numpy()

    def _expect_rows(self, wanted: int) -> None:
        whole = [row.count(b",") + 1 == len(self.columns) for row in self.rows]
        if wanted == 0 or not all(whole) or len(whole) != wanted:
            raise ValueError(
                f"{self.path} holds {sum(whole)} whole rows, and its settings tell of {wanted}: the run was "
                "interrupted, is still going on, or the file was edited. Let the run end, or leave this "
                "chain out by naming the files of the others."
            )

    def digits(self) -> int:
        """How many significant digits the numbers were written with."""
        most = 0
        for row in self.rows[:SEEN]:
            cells = row.split(b",")[self.width :]
            mantissas = (_EXPONENT.split(cell)[0].replace(b".", b"") for cell in cells)
            most = max(most, *(len(mantissa.lstrip(b"-0")) for mantissa in mantissas))
            if most >= EXACT:
                break
        return most


def read_tables(path: Path) -> list[Table]:
    """The tables of one file; none if the file is not CmdStan's."""
    text = path.read_bytes()
    lines = text.splitlines()
    if lines and not text.endswith((b"\n", b"\r")):
        lines.pop()  # cut short in the middle of a number, perhaps
    tables: list[tuple[dict[str, str], bytes, list[bytes]]] = []
    comments: list[bytes] = []
    for line in lines:
        if line.startswith(b"#"):
            comments.append(line)
        elif _HEADER.match(line):
            tables.append((_settings(comments), line, []))
            comments = []
        elif tables and line.strip():
            tables[-1][2].append(line)
            comments = []
    if not tables:
        tables = [(_settings(comments), b"", [])]
    return [
        Table(path, settings, tuple(header.decode().strip().split(",")), tuple(rows))
        for settings, header, rows in tables
        if "method" in settings or header.startswith(b"lp__")
    ]


def _settings(comments: Sequence[bytes]) -> dict[str, str]:
    """Settings by name. `file` occurs twice: that under `data` tells one posterior from another."""
    settings: dict[str, str] = {}
    section = ""
    for line in comments:
        match = _SETTING.match(line)
        if match is None:
            section = line.strip(b"# \t").decode(errors="replace")
            continue
        name, value = match[1].decode(), match[2].decode(errors="replace")
        settings["data file" if (section, name) == ("data", "file") else name] = value
    return settings


def warn_of_rounding(digits: int, names: Sequence[str], values: np.ndarray) -> None:
    """Warn if rounding blurs a column: an estimate keeps the variance that rounding adds to each draw.

    With b the standard deviation of rounding over that of the column, nothing is worth more than 1 / b^2.

    Args:
        digits: the significant digits that were written.
        names: one for each column.
        values: draws and scores, (2, chain, draw, column).
    """
    if digits >= EXACT:
        return
    with np.errstate(divide="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(values))) + 1 - digits)
    spread = np.maximum(values.std(axis=(1, 2)), np.finfo(float).tiny)
    blur = np.max(np.sqrt(np.mean(unit**2, axis=(1, 2)) / 12) / spread, axis=0)
    worst = int(np.argmax(blur))
    if blur[worst] > BLURRED:
        warnings.warn(
            f"numbers were written with {digits} digits, which blurs {names[worst]} by {blur[worst]:.1g} of "
            f"its spread: no estimate of it can be worth more than about {blur[worst] ** -2:.1g} times its "
            "draws. Sample with sig_figs=16.",
            UserWarning,
            stacklevel=3,
        )
