"""Arrays in a file that is whole or not there: a run that is stopped leaves no half file behind."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def save(path: Path, about: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write the arrays, and what is to be known about them, to one npz file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez(part, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)
    part.replace(path)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `save` wrote."""
    with np.load(path) as stored:
        about = json.loads(str(stored["about"]))
        return about, {name: stored[name] for name in stored.files if name != "about"}
