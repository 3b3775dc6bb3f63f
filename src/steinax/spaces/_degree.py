"""How many functions a set of distinct states can bear."""

from collections.abc import Callable, Sequence

from ..families import AbstractLinearFamily


def of_highest_degree[F: AbstractLinearFamily](
    make: Callable[[int], F], degrees: Sequence[int], states: int, dim: int, per_function: int
) -> F:
    """The family of the highest degree with enough distinct states for each of its functions.

    Discrete draws repeat: a state that is held out is among those of the fit as well. With as many functions
    as states every integrand would be met exactly, and the standard error be zero.
    """
    for degree in sorted(degrees, reverse=True):
        family = make(degree)
        if family.size(None, dim) * per_function <= states:
            return family
    raise ValueError(
        f"the draws are of {states} distinct states, too few for a control variate in {dim} dimensions: give "
        "more draws, leave out coordinates that hardly move, or take plain averages."
    )
