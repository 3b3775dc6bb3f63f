from collections.abc import Callable, Iterator

from ._sample import Sample


class Stream:
    """Draws that come in blocks, as often as asked for: for samples larger than memory.

    Every pass over the blocks calls `read` anew, so nothing is kept. Blocks are one-chain samples;
    those of one chain follow each other.

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
        self._read = read
        self.chains = chains

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._read())
