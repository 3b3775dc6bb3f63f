"""The estimates of one posterior from blocks of one size, made in a process of its own."""

import time
import warnings
from argparse import Namespace
from pathlib import Path

import numpy as np

import steinax as sx

from .._pinned import run
from .._provenance import provenance, source
from .._store import save
from ._data import load, starts
from ._rows import Saved, read

ARRAYS = ("value", "mcse", "plain_value", "plain_mcse")


def measure(name: str, n: int, blocks: int, path: str, training: bool = False) -> list[dict]:
    """Estimate from every block, save what was found at `path`, and tell the time it took.

    With `training`, control variates are also fitted to the draws beside each block.

    The first block is estimated twice: its first call compiles, and is timed apart.
    """
    posterior, where = load(name), starts(n, blocks)
    first, _ = _timed(*posterior.block(int(where[0]), n, training))
    calls = [_timed(*posterior.block(int(start), n, training)) for start in where]
    estimates = [estimate for _, estimate in calls]
    seconds = float(np.median([taken for taken, _ in calls]))
    about = {
        "seconds": seconds,
        "first_seconds": first,
        "dim": posterior.u.shape[1],
        "chosen": [estimate.chosen for estimate in estimates],
        "names": list(estimates[0].names),
        "refused": sum(not (each.audit and each.audit.passed) for each in estimates),
        "provenance": provenance(),
    }
    arrays = {
        field: np.stack([getattr(estimate, field) for estimate in estimates]) for field in ARRAYS
    }
    save(Path(path), about, {"start": where, **arrays})
    return [{"posterior": name, "n": n, "seconds": seconds, "first": first}]


def _timed(f: sx.data.Integrands, sample: sx.Sample) -> tuple[float, sx.Estimate]:
    start = time.process_time()
    with warnings.catch_warnings():  # refused estimates are counted, and scored like the others
        warnings.simplefilter("ignore", sx.AuditWarning)
        estimate = sx.estimate(f, sample, audit="warn")
    return time.process_time() - start, estimate


def saved(name: str, n: int, given: Namespace, training: bool = False) -> Saved:
    """The estimates of a posterior: those that are kept, if they still hold, or new ones.

    Args:
        name: of the posterior.
        n: draws in a block.
        given: the options `blocks`, `cache` and `keep` of the command line.
        training: whether control variates are also fitted to the draws beside each block.
    """
    blocks = len(starts(n, given.blocks))
    path = given.cache.resolve() / f"{name}-{n}x{blocks}{'-trained' if training else ''}.npz"
    if path.exists():
        found = read(path)
        if given.keep or found.about["provenance"]["source"] == source():
            return found
    settings = {"name": name, "n": n, "blocks": blocks, "path": str(path), "training": training}
    print(*run("posteriors._measure", settings), flush=True)
    return read(path)
