"""Read samples from files, and write results to them."""

import csv
import glob
import io
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..data import Sample


HDF5 = b"\x89HDF\r\n\x1a\n"  # netCDF 4
CLASSIC = b"CDF"  # netCDF 3
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"  # a zarr store in one file
STAN = (b"#", b"lp__")
ZARR = ("zarr.json", ".zgroup", ".zmetadata")
CMDSTAN = "cmdstan"


def check_files(files: Sequence[str], coming: bool = False) -> list[str]:
    """Raise if files are missing or of unknown format, before slow imports.

    Args:
        files: as they were given.
        coming: whether a sampler may still have to write them: then an empty folder is taken as CmdStan's.

    Returns:
        The files that are not CSV files of CmdStan: one at most.
    """
    kinds = {
        name: CMDSTAN if coming and is_unwritten(Path(name)) else _kind(Path(name))
        for name in files
    }
    alone = [name for name, kind in kinds.items() if kind != CMDSTAN]
    if alone and len(files) > 1:
        raise ValueError(
            f"{alone[0]} is not one of CmdStan's CSV files, and only those can be more than one: name one "
            "netCDF file or zarr store, or CSV files alone."
        )
    return alone


def read_sample(files: Sequence[str]) -> "Sample":
    """Read the sample of a netCDF file, a zarr store or CSV files of CmdStan, without an audit."""
    from .._show import progress

    alone = check_files(files)
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    with progress(f"reading {Path(files[0]).name}{more}"):
        if alone:
            from ..adapters import from_arviz

            return from_arviz(files[0], audit=False)
        from ..adapters import UnfinishedError, from_cmdstan

        try:
            return from_cmdstan(list(files))
        except UnfinishedError as error:
            raise ValueError(
                f"{error.problem}; steinax watch reads a run that is going on."
            ) from None


def is_zarr(path: Path) -> bool:
    """Return whether a folder is a zarr store."""
    return any((path / name).exists() for name in ZARR)


def is_unwritten(path: Path) -> bool:
    """Return whether a folder holds no zarr store and no CSV file, or only empty ones."""
    return (
        path.is_dir()
        and not is_zarr(path)
        and not any(path.glob("*.csv.gz"))
        and not any(file.stat().st_size for file in path.glob("*.csv"))
    )


def _kind(path: Path) -> str:
    """Return the format of a file from its contents, since file extensions vary."""
    if path.is_dir():
        return _kind_of_folder(path)
    if not path.exists():
        if glob.has_magic(str(path)):  # not expanded, as on Windows
            if glob.glob(str(path)):
                return CMDSTAN
            raise FileNotFoundError(f"no file matches {path}: check the folder and the pattern.")
        raise FileNotFoundError(f"there is no file {path}: check the path.")
    start = _start(path)
    if start == HDF5:
        return "netCDF"
    if start.startswith(CLASSIC):
        raise ValueError(
            f"{path} has the old netCDF format, version 3, which has no groups: save it again from "
            'ArviZ, by data.to_netcdf(path, engine="h5netcdf").'
        )
    if start.startswith(GZIP):
        raise ValueError(f"{path} is compressed: unpack it first (gunzip {path}).")
    if start.startswith(ZIP):
        return _kind_of_zip(path)
    if start.startswith(STAN):
        return CMDSTAN
    raise ValueError(
        f"{path} is {'empty' if not start else 'neither netCDF nor zarr nor a CSV file of CmdStan'}: give "
        "the file that the sampler wrote."
    )


def _kind_of_zip(path: Path) -> str:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            names = archive.namelist()
    except BadZipFile as error:
        raise ValueError(f"{path} cannot be read ({error}): write or copy it again.") from None
    if any(name in ZARR for name in names):
        if path.suffix != ".zip":
            raise ValueError(f"{path} is a zarr store in one file: let its name end in .zip.")
        return "zarr"
    arrays = all(name.endswith(".npy") for name in names)
    what = "an npz file of arrays, such as a saved control variate" if arrays else "a zip file"
    raise ValueError(
        f"{path} seems to be {what}, and not a sample: give the netCDF file, the zarr store or the CSV files "
        "of CmdStan that the sampler wrote. In Python, ControlVariate.load reads a control variate."
    )


def _kind_of_folder(path: Path) -> str:
    if is_zarr(path):
        return "zarr"
    if any(_start(file).startswith(STAN) for file in path.glob("*.csv")):
        return CMDSTAN
    if any(path.glob("*.csv.gz")):
        raise ValueError(f"the files in {path} are compressed: unpack them first (gunzip).")
    raise ValueError(
        f"the folder {path} is not a zarr store and holds no CSV files of CmdStan: name the file itself, or "
        "the folder that CmdStan wrote to."
    )


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


WIDTH = 120  # of tables that are not shown on a terminal


def format_of(options: Any) -> str:
    """Return the output format: the given option, else by the file's extension, else a table."""
    ending = Path(options.output or "").suffix.removeprefix(".")
    by_ending = ending if ending in ("json", "csv") else None
    if options.format and by_ending and options.format != by_ending:
        raise ValueError(
            f"--{options.format} and --output {options.output} ask for two formats: leave one out."
        )
    return options.format or by_ending or "table"


def write(text: str, options: Any) -> None:
    """Print the text, or write it to the output file if one is given."""
    text = text if text.endswith("\n") else text + "\n"
    if options.output is None:
        encoding = sys.stdout.encoding or "utf-8"  # may lack some characters
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    else:
        Path(options.output).write_text(text, encoding="utf-8")


def deliver(
    options: Any,
    answer: Callable[[], Mapping[str, Any]],
    rows: Callable[[], Sequence[Mapping[str, Any]]],
    table: Callable[[int], "RenderableType"],
) -> None:
    """Write a result as JSON, CSV or a table, computing only the requested format.

    Args:
        options: of the command.
        answer: returns the whole result, for JSON.
        rows: returns the rows of the table, for CSV.
        table: returns a printable table of a given width.
    """
    kind = format_of(options)
    if kind == "json":
        write(as_json(answer()), options)
    elif kind == "csv":
        write(as_csv(rows()), options)
    else:
        width = _width_of(options)
        _print_table(table(width), width, options)


def _print_table(table: "RenderableType", width: int, options: Any) -> None:
    """Print a table, in colour on a terminal only."""
    from rich.console import Console

    from .._show import plain_text

    if options.output is None and sys.stdout.isatty():
        Console(width=width).print(table)
    else:
        write(plain_text(table, width), options)


def _width_of(options: Any) -> int:
    """Return the width of a table in characters, from COLUMNS or the terminal."""
    on_terminal = options.output is None and sys.stdout.isatty()
    return shutil.get_terminal_size((80 if on_terminal else WIDTH, 24)).columns


def as_json(answer: Mapping[str, Any]) -> str:
    """Format a result as JSON with all digits, and null for NaN and infinity."""
    return json.dumps(_plain(answer), indent=2, ensure_ascii=False, allow_nan=False)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as CSV with all digits, a column for each key of the first row, and NaN as empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON, with null for NaN and infinity."""
    import numpy as np

    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _cell(value: Any) -> Any:
    import numpy as np

    value = value.item() if isinstance(value, np.generic) else value
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else value
