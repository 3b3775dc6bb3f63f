"""The columns of the draws as variables, for samples whose model told of none."""

import re
from typing import TYPE_CHECKING

import numpy as np

from ._sample import Sample
from ._variables import AXES

if TYPE_CHECKING:
    import xarray

ELEMENT = re.compile(r"(.+)\[(\d+(?:, ?\d+)*)\]")


def as_dataset(sample: Sample) -> "xarray.Dataset":
    """The unconstrained draws, with `beta[0]`, `beta[1]`, ... as one vector."""
    import xarray

    groups: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for i, name in enumerate(sample.names):
        element = ELEMENT.fullmatch(name)
        base = element[1] if element else name
        index = tuple(int(part) for part in element[2].split(",")) if element else ()
        groups.setdefault(base, []).append((i, index))
    made = {}
    for base, members in groups.items():
        columns, indices = [i for i, _ in members], [index for _, index in members]
        shape = _whole_array(indices)
        if shape is None:  # the lower triangle of a matrix, and such
            made |= {sample.names[i]: (AXES, sample.draws[..., i]) for i in columns}
            continue
        values = sample.draws[..., columns].reshape(*sample.draws.shape[:2], *shape)
        made[base] = ((*AXES, *(f"{base}_dim_{j}" for j in range(len(shape)))), values)
    axes = {axis: np.arange(n) for axis, n in zip(AXES, sample.draws.shape, strict=False)}
    dataset = xarray.Dataset(made, coords=axes)
    return dataset.assign_coords(
        {dim: np.arange(n) for dim, n in dataset.sizes.items() if dim not in AXES}
    )


def _whole_array(indices: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of the array whose elements these are, in order, or None."""
    if len({len(index) for index in indices}) > 1:
        return None
    shape = tuple(int(n) + 1 for n in np.max(indices, axis=0)) if indices[0] else ()
    return shape if indices == list(np.ndindex(*shape)) else None
