"""The claims of docs/beyond/discrete.md, in fewer rounds.

Means of counts gain by 16,000, an indicator of a count by 130, an Ising grid by 1,100 and inclusions by 350
at least; here a sixth is asked for.
"""

import pytest
from benchmarks.beyond import discrete

pytestmark = pytest.mark.slow


def test_counts_gain() -> None:
    rows = {row["integrand"]: row for row in discrete.measure("abundance", rounds=8)}
    assert rows["unseen at site 0"]["gain"] > 2700
    assert rows["total"]["gain"] > 2700
    assert rows["none unseen at site 2"]["gain"] > 20


@pytest.mark.parametrize(("only", "least"), [("Ising 0.4", 180), ("selection", 58)])
def test_binary_vectors_gain(only: str, least: float) -> None:
    rows = discrete.measure(only, rounds=8)
    assert len(rows) == 4
    assert min(row["gain"] for row in rows) > least
    # eight rounds of four integrands that covary: fewer than half covered has a chance below 1e-4
    assert sum(row["coverage"] for row in rows) / len(rows) > 0.6
