from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ._lazy import LazySample, lazy_sample
from ._sample import Sample
from ._space import refuse_space
from ._weights import refuse_weights


class Stream:
    """Draws that come in blocks, as often as asked for: for samples larger than memory.

    Every pass over the blocks calls `read` anew, so nothing is kept. Blocks are one-chain samples;
    those of one chain follow each other. A function is read by one reader, from the first block to
    the last. Arrays on disk can be read anywhere, by many readers: see `from_arrays`.

    Args:
        read: called with no argument, gives an iterator over the blocks.
        chains: how many chains, of equal length, the blocks make up.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(2, 500, 3))
    >>> stream = Stream(lambda: Sample(x, -x).blocks(100), chains=2)
    >>> sum(block.size for block in stream), sum(block.size for block in stream)
    (1000, 1000)
    """

    def __init__(self, read: Callable[[], Iterator[Sample]], chains: int = 1):
        if not callable(read):
            raise TypeError(
                f"a {type(read).__name__} cannot be read twice: give a function that starts anew on every "
                "call, such as lambda: sample.blocks(1000)."
            )
        if chains < 1:
            raise ValueError(
                f"Stream(read, chains={chains}): the blocks make up one chain or more."
            )
        self._read = read
        self.chains = chains
        self.source: LazySample | None = None

    @classmethod
    def from_arrays(
        cls,
        draws: Any,
        scores: Any,
        names: Sequence[str] | None = None,
        *,
        variables: Any = None,
        block: int | None = None,
    ) -> "Stream":
        """A stream of arrays that are read by slices: of zarr, dask, h5py, xarray or NumPy.

        Its blocks are read by several threads, or by the workers of a cluster, each of which opens the
        store itself (zarr, dask and xarray arrays can be sent to one, those of h5py cannot).

        Args:
            draws: unconstrained draws, (chain, draw, dim), or (draw, dim) for one chain.
            scores: of the same shape.
            names: one for each dimension; `x[0]`, `x[1]`, ... when not given.
            variables: the model's own quantities, to be asked for by name: a DataTree with a group
                `posterior`, or a Dataset, of which only what is asked for is read, block by block.
            block: how many draws a reader holds at once; by default whole chunks of about 16 MB.

        >>> import dask.array, numpy as np
        >>> x = dask.array.from_array(np.random.default_rng(0).normal(size=(4, 500, 3)))
        >>> Stream.from_arrays(x, -x)
        Stream(4 chains x 500 draws, 3 dimensions: x[0], x[1], x[2])
        """
        return cls.of(lazy_sample(draws, scores, names, variables, block))

    @classmethod
    def of(cls, source: LazySample) -> "Stream":
        """The stream of a lazy sample."""
        made = cls(source.blocks, source.chains)
        made.source = source
        return made

    def __iter__(self) -> Iterator[Sample]:
        names = None
        for block in self._read():
            if not isinstance(block, Sample):
                raise TypeError(
                    f"the stream gave a {type(block).__name__}: let it yield blocks, each a one-chain Sample."
                )
            if names is not None and block.names != names:
                raise ValueError(
                    f"the stream's blocks have the dimensions {', '.join(names[:5])} and then "
                    f"{', '.join(block.names[:5])}: let all have the same."
                )
            refuse_weights(block, "a stream")
            refuse_space(block, "a stream")
            names = block.names
            yield block

    def __repr__(self) -> str:
        chains = "1 chain" if self.chains == 1 else f"{self.chains} chains"
        if self.source is None:
            return f"Stream({chains})"
        names, dim = self.source.names, self.source.dim
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        dims = "1 dimension" if dim == 1 else f"{dim} dimensions"
        return f"Stream({chains} x {self.source.length} draws, {dims}: {shown})"
