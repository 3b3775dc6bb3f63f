"""CPU seconds of `summary` in a fresh process, imports included, and of the same from the shell."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import cpu_seconds
from ._sampling import cached, cut
from .models import MODELS

LENGTH = 1000
AT_MOST = {"poisson": 4.0, "radon": 6.0, "wide": 10.0}
SHELL = 0.5  # more for the command line
SCRIPT = """
import numpy as np, steinax as sx
with np.load({path!r}) as stored:
    sample = sx.Sample(stored["draws"], stored["scores"])
print(sx.summary(sample))
"""


def measure(cache: Path, only: str | None = None, rounds: int = 3) -> list[dict]:
    """A row for each of three models; the least of so many rounds, taken in turns."""
    with tempfile.TemporaryDirectory() as folder:
        calls = {}
        for name in [only] if only else AT_MOST:
            _, sample = cut(cached(name, cache), 0, LENGTH)
            arrays = Path(folder, f"{name}.npz")
            np.savez(arrays, draws=sample.draws, scores=sample.scores)
            file = Path(folder, f"{name}.nc")
            sx.save(file, sample)
            calls[name, "summary"] = [sys.executable, "-c", SCRIPT.format(path=str(arrays))]
            calls[name, "shell"] = [sys.executable, "-m", "steinax", "summary", str(file)]
        calls["", "imports"] = [sys.executable, "-c", "import jax, equinox, arviz_stats"]
        least = dict.fromkeys(calls, np.inf)
        for _ in range(rounds):
            for key, command in calls.items():
                least[key] = min(least[key], cpu_seconds(command))
    imports = least["", "imports"]
    return [
        {
            "model": name,
            "d": MODELS[name].dim,
            "draws": f"4 x {LENGTH}",
            "summary, CPU s": least[name, "summary"],
            "goal": AT_MOST[name],
            "command line, CPU s": least[name, "shell"],
            "goal there": AT_MOST[name] + SHELL,
            "import of jax, equinox, arviz_stats": imports,
        }
        for name, what in calls
        if what == "summary"
    ]
