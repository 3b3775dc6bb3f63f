"""Four real posteriors, 20 blocks of 200 draws each: gain, worst integrand and calibration.

CI takes the easiest and the hardest of them. The draws are fixed, so this passes or fails alike on every run.
What is asked is about a third of what was measured (see docs/benchmarks/posteriors.md for all 22, and
more draws).
"""

from dataclasses import dataclass

import pytest
from benchmarks.posteriors._data import load, starts
from benchmarks.posteriors._score import Score, against_the_others, score

import steinax as sx
from full import FULL

N, BLOCKS = 200, 20


@dataclass(frozen=True)
class Ask:
    """What a posterior must show: gain for means and squares, and of the worst integrand."""

    name: str
    means: float
    squares: float
    worst: float = 0.7


EASY = Ask("earnings-logearn_interaction", 1e12, 1e8)
HEAVY_TAILED = Ask("one_comp_mm_elim_abs-one_comp_mm_elim_abs", 8, 4)
FUNNEL = Ask("eight_schools-eight_schools_centered", 4, 1.5)
WIDE = Ask("diamonds-diamonds", 1500, 1.1)  # 26 dimensions
ASKED = (EASY, HEAVY_TAILED, FUNNEL, WIDE) if FULL else (EASY, FUNNEL)


def _score(name: str, **options) -> Score:
    posterior = load(name)
    found = [sx.estimate(*posterior.block(int(start), N), **options) for start in starts(N, BLOCKS)]
    k = len(posterior.names) // 2
    groups = {"means": range(k), "squares": range(k, 2 * k)}
    return score(against_the_others(found), posterior.names, groups)


@pytest.mark.slow
@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.name)
def test_without_options(ask: Ask, data_dir) -> None:
    found = _score(ask.name)
    assert found.gain["means"] > ask.means, found
    assert found.gain["squares"] > ask.squares, found
    assert found.worst_gain > ask.worst, found
    assert 0.6 < found.calibration < 1.35, found  # bars of easy posteriors are a third too long


@pytest.mark.slow
def test_quadratic_polynomials_would_not_do(data_dir) -> None:
    """The same questions find the earlier default wanting: they can be failed."""
    found = _score(FUNNEL.name, family=sx.Polynomial(2))
    assert found.gain["means"] < FUNNEL.means
    assert found.worst_gain < FUNNEL.worst
