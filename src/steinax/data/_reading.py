"""Some draws of a stored array, in memory: what cannot be right is refused by chunk and file."""

from itertools import pairwise
from typing import Any

import numpy as np

from ..working import CorruptChunkError
from ._chunks import chunk_shape, locate
from ._raw import raw_files
from ._variables import read


def read_rows(array: Any, what: str, chain: int, rows: slice) -> np.ndarray:
    """Some draws of one chain, (draw, dim), all of them finite."""
    values = unchecked_rows(array, what, chain, rows)
    if not np.isfinite(values).all():
        draw = rows.start + int(np.argmin(np.isfinite(values).all(axis=1))) * (rows.step or 1)
        reason = f"chain {chain} has values that are not finite, the first at draw {draw}"
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
    return values


def unchecked_rows(
    array: Any, what: str, chain: int, rows: slice, out: np.ndarray | None = None
) -> np.ndarray:
    """The same, if need be with numbers that are not finite.

    Args:
        array: (chain, draw, dim) or (draw, dim).
        what: draws or scores.
        chain: of which draws are wanted.
        rows: which.
        out: room for them, which is used where files are read directly.
    """
    files = raw_files(array)
    try:
        if files is not None:
            return files.read(chain, rows, out)
        values = read(array[_place(array, chain, rows)])
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        draw = _first_unreadable(array, chain, rows)
        raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason) from error
    values = np.ascontiguousarray(values, dtype=np.float64)
    _refuse_unwritten(array, what, chain, rows, values)
    return values


def _place(array: Any, chain: int, rows: slice) -> tuple[int, slice] | slice:
    return (chain, rows) if len(array.shape) == 3 else rows


def _first_unreadable(array: Any, chain: int, rows: slice) -> int:
    """The first draw, of those in `rows`, whose chunk cannot be read alone."""
    inside, files = chunk_shape(array)[-2], raw_files(array)
    for start in range(rows.start // inside * inside, rows.stop, inside):
        draw = max(start, rows.start)
        one = slice(draw, draw + 1)
        try:
            if files is not None:
                files.read(chain, one)
            else:
                read(array[_place(array, chain, one)])
        except Exception:
            return draw
    return rows.start


def _refuse_unwritten(array: Any, what: str, chain: int, rows: slice, values: np.ndarray) -> None:
    """A chunk that was never written reads as one value throughout, and says nothing of it."""
    fill = getattr(array, "fill_value", None) or 0.0
    step, inside = rows.step or 1, chunk_shape(array)[-2]
    if step > 1 or inside < 2 or not (values[:, 0] == fill).any():
        return
    edges = [0, *range(inside - rows.start % inside, len(values), inside), len(values)]
    for start, stop in pairwise(edges):
        if stop - start > 1 and (values[start:stop] == fill).all():
            draw = rows.start + start
            reason = f"draws {draw} to {draw + stop - start} of chain {chain} are all {fill}: not written"
            raise CorruptChunkError(**locate(array, what, chain, draw), reason=reason)
