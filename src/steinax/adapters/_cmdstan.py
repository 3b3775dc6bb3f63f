"""From CmdStan: its CSV files, draws and diagnostics put together."""

import glob
import io
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Sample
from ._stan_names import as_dataset, diagnostic_size, model_columns, name_unconstrained

if TYPE_CHECKING:
    from xarray import Dataset


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


SAVE = """sample again, and let CmdStan write the scores:
  CmdStanPy     model.sample(..., save_latent_dynamics=True, sig_figs=16)
  cmdstanr      model$sample(..., save_latent_dynamics = TRUE, sig_figs = 16)
  command line  ./model sample ... output file=out.csv diagnostic_file=diagnostic.csv sig_figs=16
then give the fit, or the draws and the diagnostic files together."""


def from_cmdstan(source: Any) -> Sample:
    r"""A sample from a run of CmdStan: a fit of CmdStanPy, or files, those of cmdstanr as well.

    Scores cost nothing: the diagnostic files hold, for each draw, the unconstrained parameters $u$ and
    $g = -\nabla_u \log \pi(u)$, the gradient of the potential, so the score is $-g$. CmdStan writes them
    when asked to::

        fit = model.sample(data, save_latent_dynamics=True, sig_figs=16)  # CmdStanPy
        fit <- model$sample(data, save_latent_dynamics = TRUE, sig_figs = 16)  # cmdstanr

    Parameters, transformed parameters and generated quantities are the sample's variables, counted
    from zero: Stan's `theta[1]` is `theta[0]`. Columns on the unconstrained space that differ from the
    parameter they belong to are called `tau_free__`. Warm-up draws are left out. Draws and diagnostics
    belong together where their log densities agree, whatever the files are called.

    Args:
        source: a `CmdStanMCMC`; or the paths of its CSV files, draws and diagnostics in any order: a
            list, a folder, a pattern such as `"output/*.csv"`, or one path. Without the draws there are
            only the unconstrained columns.

    Example::

        sample = sx.from_cmdstan("output")
        sx.estimate(["mu", "tau"], sample)
    """
    tables = [table for path in _paths(source) for table in _tables(path)]
    diagnostics, draws = _classify(_without_copies(tables))
    if not diagnostics:
        raise ValueError(f"none of the {_count(tables)} holds scores: {SAVE}")
    _expect_one_posterior(diagnostics)
    diagnostics = sorted(diagnostics, key=lambda table: (table.chain, table.path))
    values = _stacked(diagnostics)
    first, width, dim = diagnostics[0], diagnostics[0].width, diagnostics[0].dim
    unconstrained, scores = values[..., width : width + dim], -values[..., width + 2 * dim :]
    log_density = values[..., 0]
    posterior = _posterior(diagnostics, log_density, draws)
    names = name_unconstrained(model_columns(first.columns)[:dim], unconstrained, posterior)
    digits = min(table.digits() for table in diagnostics)
    warn_of_rounding(digits, names, np.stack([unconstrained, scores]))
    return Sample(
        unconstrained,
        scores,
        names,
        diverging=_diverging(first, values),
        variables=posterior,
        log_density=log_density,
        verified=True,
    )


def _paths(source: Any) -> list[Path]:
    """The files, each once."""
    if hasattr(source, "runset"):
        run = source.runset
        named = [*run.csv_files, *run.diagnostic_files]
        paths = [Path(path) for path in named if path]
    elif isinstance(source, str | os.PathLike):
        paths = _expand(os.fspath(source))
    elif isinstance(source, Iterable):
        paths = [path for one in source for path in _paths(one)]
    else:
        raise TypeError(
            f"a {type(source).__name__} is no run of CmdStan: give a CmdStanMCMC, or the paths of its CSV "
            "files."
        )
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        raise FileNotFoundError(
            f"no CSV file at {', '.join(missing) or source}: check the path. CmdStanPy and cmdstanr delete "
            "temporary files when the session ends; output_dir= keeps them."
        )
    return list({path.resolve(): path for path in paths}.values())


def _expand(name: str) -> list[Path]:
    if os.path.isdir(name):
        return sorted(Path(name).glob("*.csv"))
    if not os.path.exists(name) and glob.has_magic(name):
        return sorted(map(Path, glob.glob(name)))
    return [Path(name)]


def _tables(path: Path) -> Iterator[Table]:
    """The tables of a file, all of them from a sampler that had a gradient; none of other CSV files."""
    for table in read_tables(path):
        method, algorithm = (table.settings.get(one, "") for one in ("method", "algorithm"))
        if method != "sample" or algorithm == "fixed_param":
            made = f"method {method}" if method != "sample" else "fixed_param"
            raise ValueError(
                f"{path} was written by {made}, which has no draws of a Markov chain with scores: give "
                "the output of CmdStan's `sample` with NUTS or HMC."
            )
        if not table.columns[0].startswith("lp__"):
            raise ValueError(
                f"{path} has no table: the run stopped before its first draw. Run it again, or name "
                "the files of the other chains."
            )
        yield table


def _without_copies(tables: Iterable[Table]) -> list[Table]:
    """A file of draws may begin with a copy of the diagnostics."""
    return list({(table.columns, table.rows): table for table in tables}.values())


def _classify(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Diagnostics and draws. Parameters called x, p_x and g_x make draws look like diagnostics."""
    inner = {tuple(t.columns[: t.width + t.dim]) for t in tables if t.dim}
    parted: tuple[list[Table], list[Table]] = ([], [])
    for table in tables:
        parted[0 if table.dim and table.columns not in inner else 1].append(table)
    return parted


def _expect_one_posterior(tables: Sequence[Table]) -> None:
    """Chains of one run: same model, data and columns; each with a stream of random numbers its own."""
    seen: dict[tuple[str, ...], Path] = {}
    first = tables[0]
    for table in tables:
        for what in ("model", "data file"):
            if table.settings.get(what) != first.settings.get(what):
                raise ValueError(
                    f"{first.path} and {table.path} are of different runs, by their {what}: name the "
                    "files of one run."
                )
        if table.columns != first.columns:
            raise ValueError(
                f"{first.path} and {table.path} have different columns: name the files of one run."
            )
        stream = (str(table.chain), table.settings.get("seed", ""))
        if stream in seen and table.settings.get("num_chains", "1") == "1":
            raise ValueError(
                f"{seen[stream]} and {table.path} are both of chain id = {stream[0]}, seed = {stream[1]}, "
                "and differ: they are of different runs. Name the files of one run."
            )
        seen[stream] = table.path


def _stacked(tables: Sequence[Table]) -> np.ndarray:
    """(chain, draw, column), if chains are of one length."""
    chains = [table.values() for table in tables]
    lengths = {len(chain): table.path for chain, table in zip(chains, tables, strict=True)}
    if len(lengths) > 1:
        told = ", ".join(f"{length} draws in {path}" for length, path in lengths.items())
        raise ValueError(
            f"chains differ in length: {told}. Name the files of chains of one length."
        )
    return np.stack(chains)


def _posterior(
    diagnostics: Sequence[Table], densities: np.ndarray, draws: Sequence[Table]
) -> "Dataset | None":
    """The draws of each chain, found by their log densities: ids repeat when one process runs all."""
    if not draws:
        warnings.warn(
            "only diagnostic files were given, so there are unconstrained columns and no variables of the "
            "model: give the files of draws as well.",
            UserWarning,
            stacklevel=3,
        )
        return None
    if len({table.columns for table in draws}) > 1:
        raise ValueError("the files of draws have different columns: name the files of one run.")
    left = {table.path: table.values() for table in draws}
    chains = []
    for table, density in zip(diagnostics, densities, strict=True):
        path = next(
            (p for p, values in left.items() if np.array_equal(values[:, 0], density)), None
        )
        if path is None:
            raise ValueError(
                f"no file of draws belongs to {table.path} (chain id = {table.chain}): lp__ agrees with "
                "none. Give the draws and the diagnostic files of one run."
            )
        chains.append(left.pop(path))
    for path in left:
        raise ValueError(f"{path} has no diagnostic file, and so no scores: {SAVE}")
    first = draws[0]
    return as_dataset(model_columns(first.columns), np.stack(chains)[..., first.width :])


def _diverging(table: Table, values: np.ndarray) -> np.ndarray | None:
    if "divergent__" not in table.columns:  # static HMC
        return None
    return values[..., table.columns.index("divergent__")] > 0


def _count(tables: Sequence[Table]) -> str:
    files = len({table.path for table in tables})
    return "1 file" if files == 1 else f"{files} files"
