"""An estimate as labelled arrays, and back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray

    from ._result import Estimate

AXIS = "integrand"
BATCHES = {"batches": "batch", "plain_batches": "plain_batch"}
TEXTS = ("note", "reason")


def to_dataset(estimate: "Estimate", fields: tuple[str, ...]) -> "xarray.Dataset":
    """Arrays over the integrands, under their names; texts as attributes."""
    import xarray

    arrays = {
        field: ((BATCHES[field], AXIS), _rows(getattr(estimate, field), 2))
        if field in BATCHES
        else ((AXIS,), _rows(getattr(estimate, field), 1))
        for field in fields
    }
    attributes = {text: value for text in TEXTS if (value := getattr(estimate, text)) is not None}
    if estimate.audit is not None:
        attributes["audit"] = repr(estimate.audit)
    labels = {AXIS: list(estimate.names), "chosen": ((AXIS,), list(estimate.chosen))}
    return xarray.Dataset(arrays, labels, attributes)


def fields_of(dataset: "xarray.Dataset", fields: tuple[str, ...]) -> Mapping[str, Any]:
    """What `to_dataset` was given, but for the candidates and the audit."""
    if AXIS not in dataset.dims or not set(fields) <= set(dataset.data_vars):
        raise ValueError(
            f"a Dataset of {', '.join(map(str, dataset.data_vars)) or 'nothing'} is no estimate: give what "
            "Estimate.to_dataset returned, or the group `steinax` of a file written by save."
        )
    arrays = {field: np.asarray(dataset[field].values) for field in fields}
    names = {text: tuple(map(str, dataset.coords[text].values)) for text in (AXIS, "chosen")}
    texts = {text: dataset.attrs.get(text) for text in TEXTS}
    return {**arrays, "names": names[AXIS], "chosen": names["chosen"], **texts}


def _rows(values: Any, ndim: int) -> np.ndarray:
    """One integrand's numbers as arrays over one integrand."""
    array = np.asarray(values, dtype=np.float64)
    return array[..., None] if array.ndim < ndim else array
