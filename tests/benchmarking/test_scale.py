"""The benchmarks of scale at sizes for every day: the real commands, and what must hold at any size."""

import pytest
from benchmarks.scale import farm, integrands, streaming
from benchmarks.scale._growth import exponent


def test_an_exponent_is_that_of_the_cost_beyond_the_fixed_one() -> None:
    assert exponent([1, 10, 100, 1000], [2.0, 2.1, 3.0, 12.0]) == 1.0
    assert exponent([100, 1000], [1.0, 100.0]) == 2.0


@pytest.mark.slow
def test_two_workers_give_what_one_gives() -> None:
    rows = streaming.measure(megabytes=20, only="workers", rounds=1)
    figures = {row["piece"]: row["figure"] for row in rows}
    assert figures["two dask workers - one, relative"] <= 1e-9


@pytest.mark.slow
@pytest.mark.alone
def test_a_posterior_of_a_farm_costs_little_more_than_a_few_bare_fits() -> None:
    """Cross-fitting, error bars and audit of one posterior take the time of about three plain regressions."""
    (row,) = farm.measure(only="1000", rounds=2)
    assert row["ok"] == 1000
    assert row["bare fits each"] <= row["at most"] == 4.0, row


@pytest.mark.slow
def test_memory_for_many_integrands_is_predicted() -> None:
    rows = integrands.measure(only="1000")
    assert len(rows) == 2
    for row in rows:
        assert 0.7 < row["ratio"] < 1.3, row
