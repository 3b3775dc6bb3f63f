"""A small part of the benchmark of related tasks."""

import numpy as np
import pytest
from benchmarks.beyond import related


@pytest.mark.slow
def test_ten_draws_of_each_are_enough_together() -> None:
    """One round of eight tasks of fixed seed."""
    problem = related.sinusoids(10, np.random.default_rng([0, 10]))
    plain, alone, both = (
        np.sqrt(np.mean((way(problem)[0] - problem.truth) ** 2))
        for way in (related.plain, related.quadratic, related.together)
    )
    assert both < 0.5 * plain
    assert both < alone
