from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx

from ..data import Sample
from ..estimation._audited import AuditMode
from ..families import AbstractFamily, Polynomial
from ._batch import Batch, estimate_batch
from ._result import Estimates, from_table
from ._sources import estimate_sources, load_source


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
