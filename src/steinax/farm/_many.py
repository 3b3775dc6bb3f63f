import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..data import Sample
from ..data._integrands import IntegrandSpec
from ..estimation._audited import AuditMode, check_mode
from ..families import AbstractFamily, Polynomial
from ..working import gather
from ._batch import Batch, estimate_batch
from ._fingerprint import of_farm
from ._mistakes import refuse_mistaken
from ._pieces import BatchPieces, Part, SourcePieces
from ._result import Estimates, from_table
from ._sources import estimate_sources, load_source
from ._table import Table, merged


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
        pieces, work = SourcePieces(samples), partial(_of_sources, f=f, load=load, **settings)
    refuse_mistaken(f, samples)
    how = {"client": client, "threads": threads, "keep": keep, "label": label}
    return from_table(merged(gather(work, pieces, what="estimating posteriors", **how)))


def _of_part(part: Part, family: AbstractFamily, mode: AuditMode) -> Table:
    return estimate_batch(part.f, part.batch.part(part.start, part.stop), family, mode)


def _of_sources(sources: Sequence[Any], f: IntegrandSpec, **settings: Any) -> Table:
    return estimate_sources(f, sources, **settings)
