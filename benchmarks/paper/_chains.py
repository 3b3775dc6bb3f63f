"""What is kept beside the results: draws of samplers and hyper-parameters are found once."""

import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from .._store import read, save

KEPT = "STEINAX_PAPER"  # the environment variable that names the folder of results


def kept(name: str, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The arrays of that name; made, and kept, if they are not there yet."""
    path = _path(name)
    if not path.exists():
        save(path, {"name": name}, make())
    return _read(str(path))


@cache
def _read(path: str) -> dict[str, np.ndarray]:
    return read(Path(path))[1]


def kept_figures(key: str, make: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The figures that belong to a key of any length; made, and kept, if they are not there yet."""
    path = folder() / "tuned" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(made), encoding="utf-8")
        part.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def _path(name: str) -> Path:
    return folder() / "chains" / f"{name}.npz"


def folder() -> Path:
    """Where results are kept, unless another folder is given."""
    return Path(os.environ.get(KEPT) or Path.home() / ".cache" / "steinax" / "paper")
