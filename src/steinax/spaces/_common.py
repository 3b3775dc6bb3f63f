"""What the audits of spaces share: pairs of dimensions, and the scale of identities."""

import numpy as np

from .._types import AnyArray, Chains

PAIRS = 20  # dimensions up to which every pair of them is audited; beyond, neighbours


def beside_others(own: Chains, of_others: Chains) -> list[AnyArray]:
    """Products of a function of each dimension with one of another, for all that are audited."""
    dim = own.shape[2]
    shifts = range(1, dim) if dim <= PAIRS else (1, 2)
    return [np.roll(of_others, shift, axis=2) * own for shift in shifts]


def unit_size(series: Chains) -> AnyArray:
    """Series in units of their root mean square; what is zero stays zero."""
    size = np.sqrt(np.mean(series**2, axis=(0, 1)))
    return series / np.where(size > 0, size, 1.0)
