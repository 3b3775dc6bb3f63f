"""Where data sets are read from."""

import os
from pathlib import Path


def data_folder(name: str) -> Path:
    """A folder of data, below the one that STEINAX_DATA names."""
    named = os.environ.get("STEINAX_DATA")
    if named is None:
        raise SystemExit(f"STEINAX_DATA is not set: point it at the folder that holds {name}/.")
    path = Path(named, name)
    if not path.is_dir():
        raise SystemExit(f"there is no folder {path}: point STEINAX_DATA at the one that holds it.")
    return path
