"""A folder of finished results, from which a run that was stopped goes on."""

import errno
import json
import os
import threading
import warnings
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._serialise import from_bytes, to_bytes
from ._errors import NotKeptWarning, OtherRunError

DIGEST = 32  # bytes of checksum before each kept result
MANIFEST = "manifest.json"
FULL = {errno.ENOSPC, errno.EDQUOT}  # of a disk, or of what one user may have of it


class Kept:
    """The finished results of one run, each in a file that is there whole or not at all.

    A file is a checksum and an npz archive. It is written under another name, brought to disk
    (fsync) and then renamed, so a killed process leaves no half of it under its own name.
    """

    def __init__(self, folder: str | os.PathLike[str], label: str, pieces: int):
        self._folder = Path(folder)
        self._run = {"label": label, "pieces": pieces, "steinax": version("steinax")}
        self._lock = threading.Lock()
        self._claimed = False
        self._warned = False
        try:
            self._claim()
        except OSError as error:
            if error.errno not in FULL:
                error.add_note(
                    "nothing was computed yet: give `keep` a folder that can be written."
                )
                raise
            self._warn(error, len(json.dumps(self._run)))

    def load(self, place: int) -> Any:
        """The result of a piece.

        Raises:
            KeyError: if it was not kept, or if its file is cut short or altered: not believed.
        """
        try:
            content = self._path(place).read_bytes()
            if not self._claimed or content[:DIGEST] != _digest(content[DIGEST:]):
                raise KeyError(place)
            return from_bytes(content[DIGEST:])
        except (OSError, ValueError):
            raise KeyError(place) from None

    def store(self, place: int, result: object) -> None:
        """Write a result. If that fails the run goes on, with one warning: nothing is lost yet."""
        content = to_bytes(result)
        try:
            with self._lock:
                self._claim()
            _write(self._path(place), _digest(content) + content)
        except OSError as error:
            self._warn(error, len(content) + DIGEST)

    def _path(self, place: int) -> Path:
        return self._folder / f"{place:08d}.kept"

    def _claim(self) -> None:
        """Make the folder this run's own, or refuse it if it is another's."""
        if self._claimed:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        manifest = self._folder / MANIFEST
        found = _read_manifest(manifest)
        if found is None and not any(self._folder.glob("*.kept")):
            _write(manifest, json.dumps(self._run, indent=1).encode())
        elif found != self._run:
            found = found or {}
            differing = [key for key in self._run if found.get(key) != self._run[key]]
            raise OtherRunError(
                f"{self._folder} holds the results of another run (another "
                f"{', '.join(differing)}): give `keep` another folder, or delete this one to start "
                "again."
            )
        for rest in self._folder.glob("*.unfinished"):
            rest.unlink()
        self._claimed = True

    def _warn(self, error: OSError, size: int) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(
            f"{size:,} bytes could not be kept in {self._folder}: {error.strerror}. "
            "The run goes on and its results are right; if it is stopped, those not kept are "
            "computed again. Each further result is tried: make room there.",
            NotKeptWarning,
            stacklevel=2,
        )


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:  # damaged: nobody knows whose results these are
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_suffix(".unfinished")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


__all__ = ["Kept"]
