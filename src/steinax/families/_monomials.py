"""Which monomials there are, and how each is made from one of lower degree."""

from functools import cache
from itertools import combinations_with_replacement
from math import factorial
from typing import NamedTuple

import numpy as np


class Layer(NamedTuple):
    r"""The monomials of one degree, $x_{i_1} \cdots x_{i_j}$ with $i_1 \le \ldots \le i_j$.

    Each is `parent * x[last]`, and the derivative of the parent along its own last variable is
    `repeats` times the grandparent when that variable is `last`, and zero otherwise.
    """

    parent: np.ndarray
    last: np.ndarray
    grandparent: np.ndarray
    repeats: np.ndarray
    norm: np.ndarray  # 1 / sqrt(alpha!), under which (x.y)^j / j! is the sum of squares


@cache
def layers(dim: int, degree: int) -> tuple[Layer, ...]:
    """The monomials of degrees 2 to `degree` in `dim` variables (degree 1 is x itself)."""
    index = [{(): 0}, {(i,): i for i in range(dim)}]
    made = []
    for j in range(2, degree + 1):
        tuples = list(combinations_with_replacement(range(dim), j))
        index.append({t: i for i, t in enumerate(tuples)})
        repeats = [t[:-1].count(t[-1]) for t in tuples]
        made.append(
            Layer(
                parent=np.array([index[j - 1][t[:-1]] for t in tuples], np.int32),
                last=np.array([t[-1] for t in tuples], np.int32),
                grandparent=np.array([index[j - 2][t[:-2]] for t in tuples], np.int32),
                repeats=np.array(repeats, dtype=float),
                norm=np.array([_norm(t) for t in tuples]),
            )
        )
    return tuple(made)


def _norm(variables: tuple[int, ...]) -> float:
    counts = [variables.count(i) for i in set(variables)]
    return float(np.prod([factorial(c) for c in counts])) ** -0.5
