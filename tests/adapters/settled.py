"""The training points that an adapter made of a warm-up: which of its draws they are."""

import numpy as np

import steinax as sx


def training_of(
    sample: sx.Sample, warmup: np.ndarray, columns: slice = slice(None)
) -> tuple[sx.Sample, slice]:
    """The training points, and where they are in the warm-up (chain, draw, dim): one piece of all chains.

    The beginning, which has not settled, and the end, which is next to the first draw, are left out.
    `columns` are those of the draws that `warmup` has.
    """
    (part,) = sample.training
    assert (part.names, part.verified) == (sample.names, sample.verified)
    draws = part.draws[..., columns]
    (first,) = np.flatnonzero((warmup == draws[:, :1]).all(axis=(0, 2)))[-1:]
    rows = slice(int(first), int(first) + part.length)
    assert rows.start > 0 and rows.stop < warmup.shape[1] and part.length > warmup.shape[1] / 3
    np.testing.assert_array_equal(draws, warmup[:, rows])
    return part, rows


def same_draws(one: sx.Sample, other: sx.Sample) -> None:
    """Two samples with the same draws, and no training points in the first."""
    assert one.training == () and one.names == other.names
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(one.scores, other.scores)
