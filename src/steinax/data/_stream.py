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
            names = block.names
            yield block
