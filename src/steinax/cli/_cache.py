"""Compiled programs outlive the process: each call of the command line is a new one."""

import hashlib
import os
import platform
import sys
from pathlib import Path

LARGEST = 500e6  # bytes that are kept
SETTINGS = {  # small programs too: there are hundreds
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def keep_compiled() -> None:
    """Let jax keep what it compiles in the user's cache folder, unless the user said where or not to."""
    import jax

    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _forget_oldest(folder)
    except OSError:  # no home, or one that cannot be written: compile every time
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    for name, value in SETTINGS.items():
        if name.upper() not in os.environ:
            jax.config.update(name, value)


def cache_folder() -> Path:
    """Where this kind of machine keeps its programs: they may crash another that shares the folder."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "steinax", "compiled", _machine())


def _machine() -> str:
    """A name for what the processor can do."""
    kind = f"{platform.machine()} {platform.processor()}"
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        told = ("flags", "Features", "model name")
        kind += "".join(sorted({line for line in lines if line.startswith(told)}))
    return hashlib.sha256(kind.encode()).hexdigest()[:12]


def _forget_oldest(folder: Path) -> None:
    """Delete what was used longest ago, until the rest is small enough."""
    entries = [(entry.stat(), entry.path) for entry in os.scandir(folder) if entry.is_file()]
    left = sum(stat.st_size for stat, _ in entries)
    for stat, path in sorted(entries, key=lambda one: max(one[0].st_atime, one[0].st_mtime)):
        if left <= LARGEST:
            return
        Path(path).unlink(missing_ok=True)
        left -= stat.st_size


__all__ = ["cache_folder", "keep_compiled"]
