"""Convert a run of CmdStan to a sample, from its CSV files of draws and diagnostics."""

import glob
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from .._require import warn
from .._show import counted, listed
from ..data import Sample
from ._stan_names import (
    diagnostic_size,
    model_columns,
    name_unconstrained,
    parse_column,
    stan_dataset,
)
from ._training import NoDrawsError, UnfinishedError, as_sample, with_log_likelihood

_SETTING = re.compile(rb"#\s*(\w+) = (.*?)\s*(\(Default\))?\s*$")
_HEADER = re.compile(rb"(?!nan\b|inf\b)[A-Za-z]", re.IGNORECASE)
_EXPONENT = re.compile(rb"[eE]")
SEEN = 50  # rows in which digits are counted
EXACT = 15  # digits of a float64
SHOWN = 40  # bytes of a damaged line in a message
GZIP = b"\x1f\x8b"  # the start of a compressed file
HEAD = 2**16  # bytes at the start of a file that hold its settings
BLURRED = 1e-3  # of a column's standard deviation: rounding errors above give a warning


@dataclass(frozen=True)
class CsvTable:
    """One table of a CSV file, with the numbers as text.

    Args:
        path: the file.
        settings: the arguments of CmdStan, from the comments above the header; the data file is under
            `data file`.
        columns: the names in the header.
        rows: one line for each draw.
        most: the number of draws to read of a run that is not complete; None if it must be.
    """

    path: Path
    settings: Mapping[str, str]
    columns: tuple[str, ...]
    rows: tuple[bytes, ...]
    most: int | None = None

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
        """The number of leading columns of the sampler: `lp__`, `divergent__` and so on."""
        return sum(column.endswith("__") for column in self.columns)

    def number(self, setting: str) -> int:
        """Read a setting that is an integer; true is 1, as in older versions."""
        text = self.settings.get(setting, "").lower()
        try:
            return {"true": 1, "false": 0}[text] if text in {"true", "false"} else int(text)
        except ValueError:
            raise ValueError(
                f"{self.path} does not say `{setting} =` in the comments above its table: give the file as "
                "CmdStan wrote it, with all its comments."
            ) from None

    @property
    def warmup(self) -> int:
        """The number of leading rows that are of the warm-up."""
        return (
            ceil(self.number("num_warmup") / self.number("thin"))
            if self.number("save_warmup")
            else 0
        )

    @cached_property
    def values(self) -> np.ndarray:
        """The numbers, (warm-up draw or draw, column)."""
        import pandas

        rows = self.rows
        if self.most is None:
            self._expect_rows(self.warmup + self.length)
        else:
            rows = rows[: self.warmup + self.most]
        text = io.BytesIO(b"\n".join(rows))
        try:
            return pandas.read_csv(text, header=None, dtype=np.float64).to_numpy()
        except ValueError:
            raise self._damaged(next(row for row in rows if not _holds_numbers(row))) from None

    @property
    def draws(self) -> np.ndarray:
        """The numbers after the warm-up, (draw, column)."""
        return self.values[self.warmup :]

    @property
    def length(self) -> int:
        """The number of draws that the run will have after its warm-up."""
        return ceil(self.number("num_samples") / self.number("thin"))

    @property
    def complete(self) -> int:
        """The number of complete rows of draws, after the warm-up."""
        whole = self._whole
        return max((len(whole) if all(whole) else whole.index(False)) - self.warmup, 0)

    @cached_property
    def _whole(self) -> list[bool]:
        """Whether each row has all columns."""
        return [row.count(b",") + 1 == len(self.columns) for row in self.rows]

    def _expect_rows(self, wanted: int) -> None:
        whole = self._whole
        if not all(whole) and any(whole[whole.index(False) :]):
            raise self._damaged(self.rows[whole.index(False)])
        if wanted == 0 or not all(whole) or len(whole) != wanted:
            raise UnfinishedError(
                f"{self.path} holds {sum(whole)} complete rows, but its settings specify {wanted}: the run "
                "was interrupted, is still going on, or the file was edited. Let the run end, or leave this "
                "chain out by naming the files of the others",
                "from_cmdstan(..., partial=True) takes the draws that all chains have so far.",
            )

    def _damaged(self, row: bytes) -> ValueError:
        """Name the line of a row that is not one of numbers, with others after it."""
        line = self.path.read_bytes().splitlines().index(row) + 1
        start = row[:SHOWN].decode(errors="replace")
        return ValueError(
            f"line {line} of {self.path} is not a row of its table: {start!r}. "
            "The file is damaged: copy it again from where CmdStan wrote it, or leave this chain out by "
            "naming the files of the others."
        )

    def digits(self) -> int:
        """Count the significant digits that the numbers were written with."""
        most = 0
        for row in self.rows[:SEEN]:
            cells = row.split(b",")[self.width :]
            mantissas = (_EXPONENT.split(cell)[0].replace(b".", b"") for cell in cells)
            most = max(most, *(len(mantissa.lstrip(b"-0")) for mantissa in mantissas))
            if most >= EXACT:
                break
        return most


def read_tables(path: Path) -> list[CsvTable]:
    """Read the tables of one file; none if CmdStan did not write it."""
    text = path.read_bytes()
    if text.startswith(GZIP):
        raise ValueError(f"{path} is compressed: unpack it first (gunzip {path}).")
    lines = text.splitlines()
    if lines and not text.endswith((b"\n", b"\r")):
        lines.pop()  # possibly truncated in the middle of a number
    tables: list[tuple[dict[str, str], bytes, list[bytes]]] = []
    comments: list[bytes] = []
    for line in lines:
        if line.startswith(b"#"):
            comments.append(line)
        elif line.startswith(b"lp__") or (not tables and _HEADER.match(line)):
            tables.append((_settings(comments), line, []))
            comments = []
        elif tables and line.strip():
            tables[-1][2].append(line)
            comments = []
    if not tables:
        tables = [(_settings(comments), b"", [])]
    return [
        CsvTable(path, settings, tuple(header.decode().strip().split(",")), tuple(rows))
        for settings, header, rows in tables
        if "method" in settings or header.startswith(b"lp__")
    ]


def _holds_numbers(row: bytes) -> bool:
    try:
        [float(cell) for cell in row.split(b",") if cell.strip()]
    except ValueError:
        return False
    return True


def _settings(comments: Sequence[bytes]) -> dict[str, str]:
    """Parse settings by name. `file` occurs twice: the one under `data` is called `data file`."""
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
    """Warn if rounding limits the accuracy: control variates cannot remove the variance that it adds.

    With b the standard deviation of rounding over that of the column, the gain is at most 1 / b^2.

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
        warn(
            f"numbers were written with {digits} digits, which blurs {names[worst]} by {blur[worst]:.1g} of "
            f"its spread: no estimate of it can be worth more than about {blur[worst] ** -2:.1g} times its "
            "draws. Sample with sig_figs=16."
        )


SAVE = """sample again, and let CmdStan write the scores:
  CmdStanPy     model.sample(..., save_latent_dynamics=True, sig_figs=16)
  cmdstanr      model$sample(..., save_latent_dynamics = TRUE, sig_figs = 16)
  command line  ./model sample ... output file=out.csv diagnostic_file=diagnostic.csv sig_figs=16
then give the fit, or the draws and the diagnostic files together."""


def from_cmdstan(
    source: Any,
    *,
    warmup: bool = True,
    partial: bool = False,
    log_likelihood: str | Sequence[str] = (),
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
) -> Sample:
    r"""Create a sample from a run of CmdStan: a fit of CmdStanPy, or CSV files, such as those of cmdstanr.

    Scores cost nothing: the diagnostic files hold, for each draw, the unconstrained parameters $u$ and
    $g = -\nabla_u \log \pi(u)$, the gradient of the potential, so the score is $-g$. CmdStan writes them
    on request::

        fit = model.sample(data, save_latent_dynamics=True, sig_figs=16)  # CmdStanPy
        fit <- model$sample(data, save_latent_dynamics = TRUE, sig_figs = 16)  # cmdstanr

    Parameters, transformed parameters and generated quantities are the sample's variables, counted
    from zero: Stan's `theta[1]` is `theta[0]`. Columns on the unconstrained space that differ from the
    parameter they belong to are called `tau_free__`. Draws and diagnostics are matched by their log
    densities, not by the names of their files.

    Args:
        source: a `CmdStanMCMC`; or the paths of its CSV files, draws and diagnostics in any order: a
            list, a folder, a pattern such as `"output/*.csv"`, or one path. Without the draws there are
            only the unconstrained columns.
        warmup: whether to use the warm-up draws, which CmdStan writes with `save_warmup=True` (in cmdstanr
            `save_warmup = TRUE`), as training points: control variates are fitted to them, and they are not
            averaged.
        partial: whether to accept a run that is still going on or was interrupted, and take the draws
            that all chains have so far. Otherwise such a run is refused.
        log_likelihood: variables that hold the log likelihood of each observation, such as `"log_lik"`:
            they are moved to the group `log_likelihood`, where ArviZ looks for them.
        dims: the names of the axes of a variable, after (chain, draw): `{"theta": ["school"]}`.
        coords: the labels along such an axis: `{"school": ["Choate", ...]}`.

    Example::

        sample = sx.from_cmdstan("output")
        sx.estimate(["mu", "tau"], sample)
    """
    paths = _paths(source)
    tables = [table for path in paths for table in _tables(path, partial)]
    if partial:
        tables = _of_one_length(tables)
    if not tables:
        raise ValueError(
            f"there is no output of CmdStan in {_text(source)}: give its CSV files, or the folder they are "
            "in."
        )
    diagnostics, draws = _classify(_without_copies(tables))
    if not diagnostics:
        raise ValueError(f"{_holding(tables)} no scores: {_remedy(tables[0], tables)}")
    _expect_one_posterior(diagnostics)
    diagnostics = sorted(diagnostics, key=lambda table: (table.chain, table.path))
    _expect_one_length(diagnostics)
    matched = _matched(diagnostics, draws, tables)
    _expect_finite(diagnostics, matched)
    parts = _parts(diagnostics, matched, dims, coords)
    x, scores, posterior = (parts[name] for name in ("draws", "scores", "variables"))
    names = name_unconstrained(model_columns(diagnostics[0].columns)[: x.shape[-1]], x, posterior)
    digits = min(table.digits() for table in diagnostics)
    warn_of_rounding(digits, names, np.stack([x, scores]))
    lengths = {table.warmup for table in [*diagnostics, *matched]}
    usable = warmup and len(lengths) == 1 and lengths != {0}
    before = _parts(diagnostics, matched, dims, coords, warmup=True) if usable else None
    parts = with_log_likelihood({**parts, "names": names}, log_likelihood)
    return as_sample(parts, before and with_log_likelihood(before, log_likelihood))


def cmdstan_length(source: Any) -> int:
    """Read how many draws each chain of a run will have, from the settings at the top of a file."""
    path = _paths(source)[0]
    with path.open("rb") as file:
        lines = file.read(HEAD).splitlines()
    comments = [line for line in lines if line.startswith(b"#")]
    return CsvTable(path, _settings(comments), (), ()).length


def _parts(
    diagnostics: Sequence[CsvTable],
    draws: Sequence[CsvTable],
    dims: Mapping[str, Sequence[str]] | None,
    coords: Mapping[str, Any] | None,
    warmup: bool = False,
) -> dict[str, Any]:
    """Collect the arguments of `Sample` from the tables of all chains, for the draws or for the warm-up."""

    def stacked(tables: Sequence[CsvTable]) -> np.ndarray:
        return np.stack([t.values[: t.warmup] if warmup else t.draws for t in tables])

    first = diagnostics[0]
    values, width, dim = stacked(diagnostics), first.width, first.dim
    posterior = None
    if draws:
        columns = model_columns(draws[0].columns)
        flat = stacked(draws)[..., draws[0].width :]
        posterior = stan_dataset(columns, flat, dims, coords)
    return {
        "draws": values[..., width : width + dim],
        "scores": -values[..., width + 2 * dim :],
        "diverging": _diverging(first, values),
        "variables": posterior,
        "log_density": values[..., 0],
        "verified": True,
    }


def _paths(source: Any) -> list[Path]:
    """List the files of a source, without duplicates."""
    if hasattr(source, "runset"):
        run = source.runset
        named = [*run.csv_files, *run.diagnostic_files]
        paths = [Path(path) for path in named if path]
    elif isinstance(source, str | os.PathLike):
        paths = _expand(os.fspath(source))
    elif isinstance(source, Iterable) and not hasattr(source, "stan_outputs"):
        paths = [path for item in source for path in _paths(item)]
    else:
        raise TypeError(
            f"a {type(source).__name__} is not a run of CmdStan: give a CmdStanMCMC, or the paths of its CSV "
            "files. For a fit of PyStan use from_pystan."
        )
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        if isinstance(source, str | os.PathLike) and any(Path(source).glob("*.csv.gz")):
            raise ValueError(f"the files in {source} are compressed: unpack them first (gunzip).")
        raise FileNotFoundError(
            f"no CSV file at {listed(missing) or _text(source)}: check the path. CmdStanPy and cmdstanr "
            "delete temporary files when the session ends; output_dir= keeps them."
        )
    return list({path.resolve(): path for path in paths}.values())


def _text(source: Any) -> str:
    """A source as the user named it."""
    several = isinstance(source, list | tuple)
    return listed([str(one) for one in source]) if several else str(source)


def _expand(name: str) -> list[Path]:
    if os.path.isdir(name):
        return sorted(Path(name).glob("*.csv"))
    if not os.path.exists(name) and glob.has_magic(name):
        return sorted(map(Path, glob.glob(name)))
    return [Path(name)]


def _of_one_length(tables: Sequence[CsvTable]) -> list[CsvTable]:
    """Cut all tables to the draws that each of them has so far."""
    shortest = min(tables, key=lambda table: table.complete, default=None)
    if shortest is None:
        return []
    if not shortest.complete:
        raise _not_started(shortest.path)
    return [replace(table, most=shortest.complete) for table in tables]


def _not_started(path: Path) -> NoDrawsError:
    return NoDrawsError(f"{path} has no draws yet: wait until every chain is past its warm-up.")


def _tables(path: Path, partial: bool) -> Iterator[CsvTable]:
    """Iterate over the tables of a file; refuse those of methods without gradients or draws."""
    if not path.stat().st_size:
        if partial:
            raise _not_started(path)
        raise ValueError(
            f"{path} is empty: the run was interrupted, or the disk was full. Run this chain again, or leave "
            "it out by naming the files of the others."
        )
    for table in read_tables(path):
        if partial and not table.columns[0].startswith("lp__"):
            raise _not_started(path)
        method, algorithm = (table.settings.get(name, "") for name in ("method", "algorithm"))
        if not method:
            raise ValueError(
                f"{path} lacks the comment lines above its table, which begin with # and hold the settings: "
                "give the file as CmdStan wrote it, with all its comments."
            )
        if method != "sample" or algorithm == "fixed_param":
            writer = f"method {method}" if method != "sample" else "fixed_param"
            raise ValueError(
                f"{path} was written by {writer}, which does not store the scores of a Markov chain: give "
                "the output of CmdStan's `sample` with NUTS or HMC."
            )
        if not table.columns[0].startswith("lp__"):
            raise ValueError(
                f"{path} has no table: the run stopped before its first draw. Run it again, or name "
                "the files of the other chains."
            )
        yield table


def _without_copies(tables: Iterable[CsvTable]) -> list[CsvTable]:
    """Remove duplicate tables: a file of draws may begin with a copy of the diagnostics."""
    return list({(table.columns, table.rows): table for table in tables}.values())


def _classify(tables: Sequence[CsvTable]) -> tuple[list[CsvTable], list[CsvTable]]:
    """Separate diagnostics from draws, also if parameters x, p_x, g_x make draws look like diagnostics."""
    inner = {tuple(t.columns[: t.width + t.dim]) for t in tables if t.dim}
    groups: tuple[list[CsvTable], list[CsvTable]] = ([], [])
    for table in tables:
        groups[0 if table.dim and table.columns not in inner else 1].append(table)
    return groups


def _expect_one_posterior(tables: Sequence[CsvTable]) -> None:
    """Check that chains are of one run: same model, data and columns, and distinct random numbers."""
    seen: dict[tuple[str, ...], Path] = {}
    first = tables[0]
    for table in tables:
        for what in ("model", "data file"):
            if table.settings.get(what) != first.settings.get(what):
                raise ValueError(
                    f"{first.path} and {table.path} are of different runs, because they have a different "
                    f"{what}: name the files of one run."
                )
        if table.columns != first.columns:
            raise ValueError(
                f"{first.path} and {table.path} have different columns: name the files of one run."
            )
        stream = (str(table.chain), table.settings.get("seed", ""))
        if stream in seen and table.settings.get("num_chains", "1") == "1":
            raise ValueError(
                f"{seen[stream]} and {table.path} both have chain id = {stream[0]}, seed = {stream[1]}, "
                "but differ, so they are of different runs: name the files of one run."
            )
        seen[stream] = table.path


def _expect_one_length(tables: Sequence[CsvTable]) -> None:
    lengths = {len(table.draws): table.path for table in tables}
    if len(lengths) > 1:
        counts = ", ".join(f"{length} draws in {path}" for length, path in lengths.items())
        raise ValueError(
            f"chains differ in length: {counts}. Name the files of chains of equal length."
        )


def _matched(
    diagnostics: Sequence[CsvTable], draws: Sequence[CsvTable], given: Sequence[CsvTable]
) -> list[CsvTable]:
    """Find the draws of each chain by log density: ids repeat if one process runs all chains."""
    if not draws:
        warn(
            "only diagnostic files were given, which hold unconstrained columns and no variables of the "
            "model: give the files of draws as well."
        )
        return []
    if len({table.columns for table in draws}) > 1:
        raise ValueError("the files of draws have different columns: name the files of one run.")
    unmatched, chains = list(draws), []
    for table in diagnostics:
        found = next((t for t in unmatched if _are_of_one_chain(t, table)), None)
        if found is None:
            raise ValueError(
                f"no file of draws belongs to {table.path} (chain id = {table.chain}): lp__ agrees with "
                f"none. {_elsewhere(table, given) or 'Give the draws and the diagnostic files of one run.'}"
            )
        unmatched.remove(found)
        chains.append(found)
    for table in unmatched:
        raise ValueError(
            f"{table.path} is without its diagnostic file, and so without scores: {_remedy(table, given)}"
        )
    return chains


def _are_of_one_chain(one: CsvTable, other: CsvTable) -> bool:
    return np.array_equal(one.draws[:, 0], other.draws[:, 0])


def _remedy(table: CsvTable, given: Sequence[CsvTable]) -> str:
    """Say where the scores of some draws are; if they are nowhere, how to sample with them."""
    return _elsewhere(table, given) or SAVE


def _elsewhere(table: CsvTable, given: Sequence[CsvTable]) -> str:
    """Say where the other table of a chain is: in another file, or replaced by a copy; "" if unknown."""
    known, folder = {one.path.resolve() for one in given}, table.path.parent
    for path in sorted(folder.glob("*.csv")):
        with suppress(ValueError, OSError):  # other files may be anything
            others = read_tables(path) if path.resolve() not in known else []
            if any(o.columns != table.columns and _are_of_one_chain(o, table) for o in others):
                return (
                    f"{path} is next to {table.path} and of the same chain. Name such files as well, or "
                    "their folder."
                )
    kept = {(one.columns, one.rows): one.path for one in given}
    for one in given:
        other = kept[one.columns, one.rows]
        tables = [each for each in given if each.path in (one.path, other)]
        if other != one.path and len(tables) == 2:  # neither file has another table
            return (
                f"{one.path} and {other} are the same, so one was replaced by a copy of the other. Give the "
                "files as CmdStan wrote them."
            )
    return ""


def _expect_finite(diagnostics: Sequence[CsvTable], draws: Sequence[CsvTable]) -> None:
    """Check parameters, which are the variables of unconstrained columns: other quantities may be NaN."""
    first = diagnostics[0]
    columns = model_columns(first.columns)[: first.dim]
    parameters = {parse_column(column).variable for column in columns}
    for inner, table in zip(diagnostics, draws, strict=False):  # no draws, or those of every chain
        bad = ~np.isfinite(table.draws) & np.isfinite(inner.draws).all(axis=1)[:, None]
        for position in np.flatnonzero(bad.any(axis=0)):
            column = table.columns[position]
            if parse_column(column).variable in parameters:
                raise ValueError(
                    f"the parameter {column} is not finite in {counted(int(bad[:, position].sum()), 'draw')} "
                    f"of {table.path}, though the unconstrained draws are: the file was edited, or Stan's "
                    "transform overflowed. Leave this chain out by naming the files of the others, or "
                    "sample again, with a prior that keeps the parameter from such values."
                )


def _diverging(table: CsvTable, values: np.ndarray) -> np.ndarray | None:
    if "divergent__" not in table.columns:  # static HMC
        return None
    return values[..., table.columns.index("divergent__")] > 0


def _holding(tables: Sequence[CsvTable]) -> str:
    files = {table.path for table in tables}
    return f"{tables[0].path} holds" if len(files) == 1 else f"{len(files)} files hold"
