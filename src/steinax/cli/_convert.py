"""`steinax convert`."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from ._files import read_sample


def run(options: Namespace) -> int:
    """Write what is read to one file."""
    out = Path(options.out)
    _check(out, options.files, options.force)
    from ..saving import save

    sample = read_sample(options.files)
    save(out, sample, overwrite=options.force)
    print(f"{out}: {sample}", file=sys.stderr)
    return 0


def _check(out: Path, files: Sequence[str], force: bool) -> None:
    """Refuse before anything is read, which may take long."""
    if out.suffix not in (".nc", ".zarr"):
        raise ValueError(
            f"{out} ends neither in .nc nor in .zarr: name the file to write last, such as draws.nc."
        )
    if not out.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {out.parent}: make it first.")
    if out.resolve() in {Path(name).resolve() for name in files}:
        raise ValueError(f"{out} is to be read and to be written: give the result another name.")
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists: give another name, or --force to replace it.")


__all__ = ["run"]
