"""Estimate many posteriors, divided into pieces that are processed independently."""

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil, prod
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from ..adapters import from_arviz
from ..auditing import AuditMode, check_mode
from ..data import (
    Integrands,
    IntegrandSpec,
    Sample,
    integrand_columns,
    integrands,
    refuse_space,
    refuse_weights,
    variables_asked,
)
from ..families import AbstractFamily, Polynomial
from ..working import fingerprint, gather
from ._batch import INTEGRANDS, Batch, Group, Status, estimate_batch, estimate_group, failure
from ._result import Estimates, ResultRows, failures, from_table, merged, ordered

POSTERIORS = 256  # most posteriors of a batch in one piece
BYTES = 64e6  # of the draws, scores and integrands of one piece
SOURCES = 32  # files or samples in one piece


class BatchSlice(NamedTuple):
    """Posteriors `start` to `stop` of a batch, and their integrands."""

    f: Any
    batch: Batch
    start: int
    stop: int

    def __repr__(self) -> str:
        return f"posteriors {self.start} to {self.stop - 1}"


class BatchPieces(Sequence[BatchSlice]):
    """Slices of a batch. Arrays in memory are sliced here; others are read where the work is done."""

    def __init__(self, f: IntegrandSpec, batch: Batch):
        self._f, self._batch = f, batch
        size = 8 * prod(batch.draws.shape[1:3]) * (2 * batch.draws.shape[3] + _width(f, batch))
        self._size = int(min(max(BYTES // size, 1), POSTERIORS))

    def __len__(self) -> int:
        return ceil(len(self._batch) / self._size)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * self._size
        stop = min(start + self._size, len(self._batch))
        f = _cut(self._f, start, stop, self._batch.draws.shape)
        if isinstance(self._batch.draws, np.ndarray):
            batch = self._batch.part(start, stop)
            return BatchSlice(f, batch, 0, len(batch))
        return BatchSlice(f, self._batch, start, stop)


class SourcePieces(Sequence[Sequence[Any]]):
    """Consecutive groups of at most `SOURCES` sources."""

    def __init__(self, sources: Sequence[Any]):
        self._sources = sources

    def __len__(self) -> int:
        return ceil(len(self._sources) / SOURCES)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * SOURCES
        return [self._sources[i] for i in range(start, min(start + SOURCES, len(self._sources)))]


def one_posterior(f: IntegrandSpec, batch: Batch, i: int) -> tuple[Any, Sample]:
    """Select the integrands and the sample of one posterior of a batch."""
    single, shape = batch.part(i, i + 1), tuple(batch.draws.shape)
    selected = _first_posterior(_cut(f, i, i + 1, shape), (1, *shape[1:3]))
    return selected, Sample(single.draws[0], single.scores[0], batch.names)


def _width(f: IntegrandSpec, batch: Batch) -> int:
    """Count the integrands, by evaluating their shapes on the first posterior."""
    try:
        return len(integrand_columns(*one_posterior(f, batch, 0)).names)
    except Exception:  # reported when the integrands are evaluated
        return 1


def _first_posterior(f: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(f, Mapping):
        return {name: _first_posterior(function, shape) for name, function in f.items()}
    return f[0] if tuple(getattr(f, "shape", ()))[:3] == shape else f


def _cut(f: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """Select the integrands of posteriors: arrays that begin (posterior, chain, draw) are sliced."""
    if isinstance(f, Mapping):
        return {name: _cut(function, start, stop, shape) for name, function in f.items()}
    if tuple(getattr(f, "shape", ()))[:3] == tuple(shape[:3]):
        return np.asarray(f[start:stop])
    return f


def farm_label(
    f: IntegrandSpec, samples: Any, family: AbstractFamily, load: Any, audit: str
) -> str:
    """Build a label of a run: the number of posteriors, and a digest of the draws and all settings.

    Arrays count by all their numbers, in memory or on disk; files by their names, sizes and times; other
    sources by their content, with the function that loads them.
    """
    if isinstance(samples, Batch):
        data = (samples.names, samples.draws, samples.scores, samples.diverging)
    else:
        data = [_source_key(samples[i], f) for i in range(len(samples))]
    return f"{len(samples)} posteriors, {fingerprint(f, family, load, audit, data)}"


def _source_key(source: Any, f: IntegrandSpec) -> Any:
    if isinstance(source, Sample):
        arrays = (source.draws, source.scores, source.diverging, source.weights)
        return source.names, arrays, source.space, variables_asked(f, source.variables)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [(str(file), file.stat()) for file in files if file.is_file()]
        return os.fspath(source), [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    return source


TRIED = 3  # first posteriors on which the integrands are tried


def check_integrands(f: IntegrandSpec, samples: Batch | Sequence[Any]) -> None:
    """Raise the error of the integrands if it is the same for each of the first posteriors.

    Otherwise an unknown name, or a function that fails on every draw, would give a million equal
    failures. Posteriors that are not finite are skipped, and so are files, which may be slow to read.
    """
    errors = []
    for i in range(min(TRIED, len(samples))):
        try:
            if isinstance(samples, Batch):
                wanted, sample = one_posterior(f, samples, i)
            elif isinstance(samples[i], Sample):
                wanted, sample = f, samples[i].with_training()
            else:
                continue
        except Exception:
            continue
        try:
            integrands(wanted, sample)
            return
        except Exception as error:
            errors.append(error)
    if len(errors) > 1 and len({(type(error), str(error)) for error in errors}) == 1:
        errors[0].add_note("The integrands fail in this way for each of the first posteriors.")
        raise errors[0]


UNREADABLE = "unreadable"


def load_source(source: Any) -> Sample:
    """Read a sample from the path of a file that `save` wrote; return a sample unchanged."""
    if isinstance(source, Sample):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"a {type(source).__name__} is neither a sample nor a path: give load=, a function that makes a "
            "Sample of it."
        )
    return from_arviz(source, audit=False)


def estimate_sources(
    f: IntegrandSpec,
    sources: Iterable[Any],
    load: Callable[[Any], Sample],
    family: AbstractFamily,
    mode: AuditMode,
) -> ResultRows:
    """Estimate the expectations of each source: one row each; those of one shape are computed together."""
    groups: dict[Any, list[ReadSample]] = defaultdict(list)
    failed: list[tuple[int, Status]] = []
    for place, source in enumerate(sources):
        read = _read(f, place, source, load)
        if isinstance(read, ReadSample):
            groups[read.shape].append(read)
        else:
            failed.append((place, read))
    tables = [estimate_group(_stacked(group), family, mode) for group in groups.values()]
    order = [sample.place for group in groups.values() for sample in group]
    order += [place for place, _ in failed]
    return ordered(merged([*tables, failures(problem for _, problem in failed)]), order)


class ReadSample(NamedTuple):
    """A sample that was read, its integrands and its place among the sources."""

    place: int
    sample: Sample
    wanted: Integrands

    @property
    def shape(self) -> Hashable:
        """The properties that posteriors must share to be computed together."""
        sample = self.sample
        flags = sample.diverging is None
        return sample.draws.shape, str(sample.dtype), flags, sample.names, self.wanted.names


def _read(
    f: IntegrandSpec, place: int, source: Any, load: Callable[[Any], Sample]
) -> ReadSample | Status:
    try:
        sample = load(source)
        sample = sample.with_training() if isinstance(sample, Sample) else sample
    except Exception as error:
        return failure(error, UNREADABLE)
    try:
        refuse_space(sample, "estimate_many")
        refuse_weights(sample, "estimate_many")
        return ReadSample(place, sample, integrands(f, sample))
    except Exception as error:
        return failure(error, INTEGRANDS)


def _stacked(group: list[ReadSample]) -> Group:
    first = group[0].sample
    draws, scores, values = (
        np.stack(arrays)
        for arrays in zip(
            *((read.sample.draws, read.sample.scores, read.wanted.values) for read in group),
            strict=True,
        )
    )
    flags = None
    if first.diverging is not None:
        flags = np.stack([np.asarray(read.sample.diverging) for read in group])
    return Group(draws, scores, values, flags, first.names, group[0].wanted.names)


class FarmTask(eqx.Module):
    """The work of `estimate_many` on one piece, as a function for any engine that maps functions.

    It is called with a `Batch`, or with an iterable of samples or of sources that `load` reads, and
    returns their rows. It can be pickled if its fields can: functions of a module can, lambdas cannot.
    Errors of single posteriors are not raised.

    Args:
        f: the integrands, as for `estimate_many`.
        family: of control variates.
        load: makes a sample of a source; by default paths are read by `from_arviz`.
        audit: as for `estimate_many`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 250, 2))
    >>> task = FarmTask("x")
    >>> rows = task(sx.Sample(draws, -draws) for draws in x)
    >>> rows.value.shape
    (3, 2)
    """

    f: Any
    family: AbstractFamily = eqx.field(default_factory=lambda: Polynomial(2))
    load: Callable[[Any], Sample] = eqx.field(static=True, default=load_source)
    audit: AuditMode = eqx.field(static=True, default="raise")

    def __call__(self, piece: Batch | Iterable[Any]) -> Estimates:
        """Estimate one row for each posterior, in order."""
        settings = {"family": self.family, "mode": self.audit}
        if isinstance(piece, Batch):
            return from_table(estimate_batch(self.f, piece.part(0, len(piece)), **settings))
        return from_table(estimate_sources(self.f, piece, load=self.load, **settings))


def estimate_many(
    f: IntegrandSpec,
    samples: Batch | Sequence[Any],
    family: AbstractFamily | None = None,
    *,
    load: Callable[[Any], Sample] | None = None,
    client: Any = None,
    threads: int | None = None,
    keep: str | os.PathLike[str] | None = None,
    audit: AuditMode = "raise",
) -> Estimates:
    """Estimate the same expectations under many posteriors: a row of numbers for each.

    Each row is what `estimate(f, sample, family)` gives for its posterior, cross-fitted and audited.
    Small posteriors of one shape are computed together, for polynomials of degree 1 and 2: thousands in
    seconds. Others are estimated one by one. If a posterior fails, because of its audit, draws that are
    not finite or a file that cannot be read, its row says so, and the others are still estimated. Only
    integrands that fail in the same way for each of the first posteriors in memory raise an error.

    Args:
        f: the integrands: names, a function of one draw, a dict of these, or for a batch an array
            (posterior, chain, draw, k).
        samples: a `Batch`; or a sequence of samples, of paths that `save` wrote or of anything that
            `load` makes a sample of. Their shapes may differ.
        family: of control variates, `Polynomial(2)` by default.
        load: makes a sample of a source; by default paths are read by `from_arviz`.
        client: a `dask.distributed.Client` whose workers do the work; this process's threads by default.
        threads: the number of threads, without a client; one for each core by default.
        keep: a folder for finished pieces, from which a stopped run resumes. It is refused for another
            run: other draws, another `family`, or functions with other code or other values of the
            variables they use. For this comparison arrays on disk are read once more.
        audit: how to treat a posterior whose scores do not belong to its draws: with `"raise"` a row
            without numbers; with `"warn"` a row of numbers whose status says so; with `"unadjusted"`
            an ordinary row, if its chains are in order; `"off"` skips the audit.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(100, 4, 250, 2))
    >>> sx.estimate_many({"square": lambda x: x[0] ** 2}, sx.Batch(x, -x)).ok.sum().item()
    100
    """
    check_mode(audit)
    _check_samples(f, samples, load)
    family = Polynomial(2) if family is None else family
    load = load_source if load is None else load
    label = "" if keep is None else farm_label(f, samples, family, load, audit)
    settings = {"family": family, "mode": audit}
    if isinstance(samples, Batch):
        pieces, work = BatchPieces(f, samples), partial(_estimate_piece, **settings)
    else:
        pieces, work = SourcePieces(samples), partial(estimate_sources, f, load=load, **settings)
    check_integrands(f, samples)
    options = {"client": client, "threads": threads, "keep": keep, "label": label}
    return from_table(merged(gather(work, pieces, what="estimating posteriors", **options)))


def _check_samples(f: object, samples: object, load: object) -> None:
    """Refuse what is not a batch or a sequence of posteriors, and integrands in its place."""
    several = f if isinstance(f, list | tuple) else [f]
    if any(isinstance(one, Batch | Sample) for one in several):
        raise TypeError(
            "the integrands come first, and then the posteriors: estimate_many(f, samples), where f is a "
            "name, a function or a dict of these."
        )
    if isinstance(samples, Batch):
        return
    hint = "a Batch, or a list of samples or of paths"
    if isinstance(samples, Sample):
        hint = "a list of samples, or use estimate(f, sample) for one"
    elif isinstance(samples, str | os.PathLike):
        hint = f"a list of paths, [{str(samples)!r}]"
    elif isinstance(samples, np.ndarray) and load is None:
        hint = "a Batch(draws, scores) of arrays (posterior, chain, draw, dim)"
    elif hasattr(samples, "__len__") and hasattr(samples, "__getitem__"):
        return
    raise TypeError(f"the posteriors are of type {type(samples).__name__}: give {hint}.")


def _estimate_piece(piece: BatchSlice, family: AbstractFamily, mode: AuditMode) -> ResultRows:
    return estimate_batch(piece.f, piece.batch.part(piece.start, piece.stop), family, mode)
