"""Warm-up draws that a benchmark may use: the first ones may be anywhere."""

import numpy as np


def first_finite(*arrays: np.ndarray) -> int:
    """The draw from which on all numbers of all chains are finite; arrays are (chain, draw, ...)."""
    finite = np.all([np.isfinite(array).all(axis=(0, 2)) for array in arrays], axis=0)
    return 0 if finite.all() else int(np.flatnonzero(~finite)[-1]) + 1
