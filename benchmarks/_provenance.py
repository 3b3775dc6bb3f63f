"""Where figures come from: the machine, the versions, and the very source that was measured."""

import hashlib
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import steinax


def cpu_model() -> str:
    """The processor's name, as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def source() -> str:
    """A short digest of every Python file of the installed steinax, when first asked for."""
    folder = Path(steinax.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def provenance() -> dict[str, str | int]:
    """The machine, the date and the versions of what is measured now."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 0,
        "python": platform.python_version(),
        "steinax": version("steinax"),
        "source": source(),
        "jax": version("jax"),
        "numpy": version("numpy"),
    }
