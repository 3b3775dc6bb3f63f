import pytest
from benchmarks.beyond.weighted import measure


@pytest.mark.slow
def test_control_variates_gain_on_weighted_draws():
    (row,) = measure(only="2 x wider, Polynomial(2) + Kernel", rounds=6)
    assert all(float(row[f"gain of {f}"]) > 3 for f in ("a", "b"))
    assert float(row["95% covers"]) > 0.7  # of 24 intervals
