"""From what was typed to a sample, whatever wrote the files."""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..data import Sample

HDF5 = b"\x89HDF\r\n\x1a\n"  # netCDF 4
CLASSIC = b"CDF"  # netCDF 3
ZIP = b"PK\x03\x04"  # a zarr store in one file
STAN = (b"#", b"lp__")
ZARR = ("zarr.json", ".zgroup", ".zmetadata")
CMDSTAN = "cmdstan"


def read_sample(files: Sequence[str]) -> "Sample":
    """The sample in a netCDF file, in a zarr store, or in CSV files of CmdStan; not yet audited."""
    from .._progress import progress

    kinds = {name: _kind(Path(name)) for name in files}
    alone = [name for name, kind in kinds.items() if kind != CMDSTAN]
    if alone and len(files) > 1:
        raise ValueError(
            f"{alone[0]} is not one of CmdStan's CSV files, and only those can be more than one: name one "
            "netCDF file or zarr store, or CSV files alone."
        )
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    with progress(f"reading {Path(files[0]).name}{more}"):
        if alone:
            from ..adapters import from_arviz

            return from_arviz(files[0], audit=False)
        from ..adapters._cmdstan import from_cmdstan

        return from_cmdstan(list(files))


def is_zarr(path: Path) -> bool:
    """Whether a folder is a zarr store."""
    return any((path / name).exists() for name in ZARR)


def _kind(path: Path) -> str:
    """By what is inside, since R, Python and people give files different endings."""
    if path.is_dir():
        return _kind_of_folder(path)
    if not path.exists():
        if glob.has_magic(str(path)):  # not expanded, as on Windows
            return CMDSTAN
        raise FileNotFoundError(f"there is no file {path}: check the path.")
    start = _start(path)
    if start == HDF5:
        return "netCDF"
    if start.startswith(CLASSIC):
        raise ValueError(
            f"{path} is of the old kind of netCDF, version 3, which has no groups: save it again from "
            'ArviZ, by data.to_netcdf(path, engine="h5netcdf").'
        )
    if start.startswith(ZIP):
        return "zarr"
    if start.startswith(STAN):
        return CMDSTAN
    raise ValueError(
        f"{path} is {'empty' if not start else 'neither netCDF nor zarr nor a CSV file of CmdStan'}: give "
        "the file that the sampler wrote."
    )


def _kind_of_folder(path: Path) -> str:
    if is_zarr(path):
        return "zarr"
    if any(_start(file).startswith(STAN) for file in path.glob("*.csv")):
        return CMDSTAN
    raise ValueError(
        f"the folder {path} is no zarr store and holds no CSV files of CmdStan: name the file itself, or "
        "the folder that CmdStan wrote to."
    )


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)


__all__ = ["is_zarr", "read_sample"]
