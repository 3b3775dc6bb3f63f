"""Integrands that would fail for every posterior are refused before the work begins."""

from collections.abc import Sequence
from typing import Any

from ..data import Sample, integrands
from ..data._integrands import IntegrandSpec
from ._batch import Batch
from ._pieces import one_posterior

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
