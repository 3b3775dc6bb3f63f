"""Estimates of many posteriors, in pieces that are worked on apart."""

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
from ..data import Integrands, Sample, integrands
from ..data._integrands import IntegrandSpec, columns, variables_asked
from ..data._sample import refuse_space
from ..data._weights import refuse_weights
from ..estimation._audited import AuditMode, check_mode
from ..families import AbstractFamily, Polynomial
from ..working import gather
from ..working._fingerprint import fingerprint
from ._batch import INTEGRANDS, Batch, Group, Problem, estimate_batch, estimate_group, failure
from ._result import Estimates, Table, failures, from_table, merged, ordered

POSTERIORS = 256  # of a batch, at most
BYTES = 64e6  # of their draws, scores and integrands
SOURCES = 32  # files or samples


class Part(NamedTuple):
    """Some posteriors of a batch, and their integrands."""

    f: Any
    batch: Batch
    start: int
    stop: int

    def __repr__(self) -> str:
        return f"posteriors {self.start} to {self.stop - 1}"


class BatchPieces(Sequence[Part]):
    """The parts of a batch. Arrays in memory are cut; others are read by whoever does the work."""

    def __init__(self, f: IntegrandSpec, batch: Batch):
        self._f, self._batch = f, batch
        each = 8 * prod(batch.draws.shape[1:3]) * (2 * batch.draws.shape[3] + _width(f, batch))
        self._size = int(min(max(BYTES // each, 1), POSTERIORS))

    def __len__(self) -> int:
        return ceil(len(self._batch) / self._size)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * self._size
        stop = min(start + self._size, len(self._batch))
        f = _cut(self._f, start, stop, self._batch.draws.shape)
        if isinstance(self._batch.draws, np.ndarray):
            part = self._batch.part(start, stop)
            return Part(f, part, 0, len(part))
        return Part(f, self._batch, start, stop)


class SourcePieces(Sequence[Sequence[Any]]):
    """Sources, some at a time."""

    def __init__(self, sources: Sequence[Any]):
        self._sources = sources

    def __len__(self) -> int:
        return ceil(len(self._sources) / SOURCES)

    def __getitem__(self, index: Any) -> Any:
        start = range(len(self))[index] * SOURCES
        return [self._sources[i] for i in range(start, min(start + SOURCES, len(self._sources)))]


def one_posterior(f: IntegrandSpec, batch: Batch, i: int) -> tuple[Any, Sample]:
    """The integrands and the sample of one posterior of a batch."""
    part, shape = batch.part(i, i + 1), tuple(batch.draws.shape)
    one = _without_axis(_cut(f, i, i + 1, shape), (1, *shape[1:3]))
    return one, Sample(part.draws[0], part.scores[0], batch.names)


def _width(f: IntegrandSpec, batch: Batch) -> int:
    """How many integrands there are, found on the first posterior, and not a value of them."""
    try:
        return len(columns(*one_posterior(f, batch, 0)).names)
    except Exception:  # whatever is wrong is said when they are evaluated
        return 1


def _without_axis(f: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(f, Mapping):
        return {name: _without_axis(one, shape) for name, one in f.items()}
    return f[0] if tuple(getattr(f, "shape", ()))[:3] == shape else f


def _cut(f: Any, start: int, stop: int, shape: tuple[int, ...]) -> Any:
    """The integrands of some posteriors: arrays that begin (posterior, chain, draw) are cut."""
    if isinstance(f, Mapping):
        return {name: _cut(one, start, stop, shape) for name, one in f.items()}
    if tuple(getattr(f, "shape", ()))[:3] == tuple(shape[:3]):
        return np.asarray(f[start:stop])
    return f


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


LOOKED_AT = 3  # posteriors, the first that can be read


def refuse_mistaken(f: IntegrandSpec, samples: Batch | Sequence[Any]) -> None:
    """Raise what the integrands raise, where they raise the same for each of the first posteriors.

    A name that nobody has, or a function that fails on every draw, would give a million equal
    failures. Posteriors that are not finite are passed over, and so are files, which may be far away.
    """
    errors = []
    for i in range(min(LOOKED_AT, len(samples))):
        try:
            if isinstance(samples, Batch):
                wanted, sample = one_posterior(f, samples, i)
            elif isinstance(samples[i], Sample):
                wanted, sample = f, samples[i]
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
        errors[0].add_note("The integrands fail so for each of the first posteriors.")
        raise errors[0]


UNREADABLE = "unreadable"


def load_source(source: Any) -> Sample:
    """A sample from the path of a file that `save` wrote; a sample is what it is."""
    if isinstance(source, Sample):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"a {type(source).__name__} is no sample and no path: give load=, a function that makes a Sample "
            "of it."
        )
    return from_arviz(source, audit=False)


def estimate_sources(
    f: IntegrandSpec,
    sources: Iterable[Any],
    load: Callable[[Any], Sample],
    family: AbstractFamily,
    mode: AuditMode,
) -> Table:
    """A row for each source; those of one shape are computed together."""
    groups: dict[Any, list[Read]] = defaultdict(list)
    failed: list[tuple[int, Problem]] = []
    for place, source in enumerate(sources):
        found = _read(f, place, source, load)
        if isinstance(found, Read):
            groups[found.shape].append(found)
        else:
            failed.append((place, found))
    tables = [estimate_group(_stacked(group), family, mode) for group in groups.values()]
    order = [one.place for group in groups.values() for one in group]
    order += [place for place, _ in failed]
    return ordered(merged([*tables, failures(problem for _, problem in failed)]), order)


class Read(NamedTuple):
    """A sample and its integrands."""

    place: int
    sample: Sample
    wanted: Integrands

    @property
    def shape(self) -> Hashable:
        """What posteriors must share to be computed together."""
        one = self.sample
        flags = one.diverging is None
        return one.draws.shape, str(one.dtype), flags, one.names, self.wanted.names


def _read(
    f: IntegrandSpec, place: int, source: Any, load: Callable[[Any], Sample]
) -> Read | Problem:
    try:
        sample = load(source)
    except Exception as error:
        return failure(error, UNREADABLE)
    try:
        refuse_space(sample, "estimate_many")
        refuse_weights(sample, "estimate_many")
        return Read(place, sample, integrands(f, sample))
    except Exception as error:
        return failure(error, INTEGRANDS)


def _stacked(group: list[Read]) -> Group:
    first = group[0].sample
    draws, scores, values = (
        np.stack(arrays)
        for arrays in zip(
            *((one.sample.draws, one.sample.scores, one.wanted.values) for one in group),
            strict=True,
        )
    )
    flags = None
    if first.diverging is not None:
        flags = np.stack([np.asarray(one.sample.diverging) for one in group])
    return Group(draws, scores, values, flags, first.names, group[0].wanted.names)


class FarmTask(eqx.Module):
    """What `estimate_many` does to a piece of the work: a function for any engine that maps one.

    It is called with a `Batch`, or with an iterable of samples or of what `load` makes samples of, and
    gives their rows. It can be pickled if its parts can: functions of a module can, lambdas cannot. No
    error of a single posterior leaves it.

    Args:
        f: the integrands, as for `estimate_many`.
        family: of control variates.
        load: makes a sample of a source; by default paths are read by `from_arviz`.
        audit: as for `estimate_many`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 4, 250, 2))
    >>> task = FarmTask("x")
    >>> rows = task(sx.Sample(one, -one) for one in x)
    >>> rows.value.shape
    (3, 2)
    """

    f: Any
    family: AbstractFamily = eqx.field(default_factory=lambda: Polynomial(2))
    load: Callable[[Any], Sample] = eqx.field(static=True, default=load_source)
    audit: AuditMode = eqx.field(static=True, default="raise")

    def __call__(self, piece: Batch | Iterable[Any]) -> Estimates:
        """One row for each posterior, in order."""
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
    Small posteriors of one shape are computed together, for polynomials of degree 1 and 2: thousands
    in seconds. Others are estimated one by one. A posterior that fails, by its audit, by draws that
    are not finite or by a file that cannot be read, is a row that says so, and the others go on. Only
    integrands that fail in one way for each of the first posteriors in memory are an error.

    Args:
        f: the integrands: names, a function of one draw, a dict of these, or for a batch an array
            (posterior, chain, draw, k).
        samples: a `Batch`; or a sequence of samples, of paths that `save` wrote or of anything that
            `load` makes a sample of. Their shapes may differ.
        family: of control variates, `Polynomial(2)` by default.
        load: makes a sample of a source; by default paths are read by `from_arviz`.
        client: a `dask.distributed.Client` whose workers do the work; this process's threads by default.
        threads: how many, without a client; one for each core by default.
        keep: a folder for finished pieces, from which a run that was stopped goes on. Another run is
            refused there: other draws, another `family`, or functions with other code or other values
            of what they use. To tell, arrays on disk are read once more.
        audit: what becomes of a posterior whose scores are not those of its draws: with `"raise"` a
            row without numbers; with `"warn"` a row of numbers whose status says so;
            with `"unadjusted"` an ordinary row, if its chains are in order; `"off"` is not to look.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(100, 4, 250, 2))
    >>> sx.estimate_many({"square": lambda x: x[0] ** 2}, sx.Batch(x, -x)).ok.sum().item()
    100
    """
    check_mode(audit)
    family = Polynomial(2) if family is None else family
    load = load_source if load is None else load
    label = "" if keep is None else of_farm(f, samples, family, load, audit)
    settings = {"family": family, "mode": audit}
    if isinstance(samples, Batch):
        pieces, work = BatchPieces(f, samples), partial(_of_part, **settings)
    else:
        pieces, work = SourcePieces(samples), partial(estimate_sources, f, load=load, **settings)
    refuse_mistaken(f, samples)
    how = {"client": client, "threads": threads, "keep": keep, "label": label}
    return from_table(merged(gather(work, pieces, what="estimating posteriors", **how)))


def _of_part(part: Part, family: AbstractFamily, mode: AuditMode) -> Table:
    return estimate_batch(part.f, part.batch.part(part.start, part.stop), family, mode)
