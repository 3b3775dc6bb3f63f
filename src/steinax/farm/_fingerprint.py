"""A text that changes whenever the rows of a farm could, so that kept ones are not mistaken."""

import os
from pathlib import Path
from typing import Any

from ..data import Sample
from ..data._integrands import IntegrandSpec, variables_asked
from ..families import AbstractFamily
from ..working._fingerprint import fingerprint
from ._batch import Batch


def of_farm(f: IntegrandSpec, samples: Any, family: AbstractFamily, load: Any, audit: str) -> str:
    """How many posteriors there are, and a digest of the draws and of all settings.

    Of arrays every number counts, in memory or on disk; of files their names, sizes and times, and of
    other sources what they hold, with the function that loads them.
    """
    if isinstance(samples, Batch):
        data = (samples.names, samples.draws, samples.scores, samples.diverging)
    else:
        data = [_of_source(samples[i], f) for i in range(len(samples))]
    return f"{len(samples)} posteriors, {fingerprint(f, family, load, audit, data)}"


def _of_source(source: Any, f: IntegrandSpec) -> Any:
    if isinstance(source, Sample):
        arrays = (source.draws, source.scores, source.diverging, source.weights)
        return source.names, arrays, source.space, variables_asked(f, source.variables)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        known = [(str(one), one.stat()) for one in files if one.is_file()]
        return os.fspath(source), [(name, one.st_size, one.st_mtime_ns) for name, one in known]
    return source
