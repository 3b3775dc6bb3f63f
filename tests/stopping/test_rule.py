"""When sampling stops: the rule, the tolerance, the budgets, and what is reported."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import steinax as sx
from steinax.stopping import LEAST, expected_draws, reason_to_stop, with_errors_of_two

FAMILY = sx.Polynomial(2)
COSINE = {
    "cos": lambda x: np.cos(x[0])
}  # beyond polynomials of degree 2: it gains, and not everything


def gaussian(
    seed: int = 0, batch: int = 25, shift: float = 0.0, count: int = 400
) -> Iterator[sx.Sample]:
    """Four chains in batches; with a shift the first chain has another mean."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(4, batch, 2))
        scores = -x
        x[0] += shift
        yield sx.Sample(x, scores)


def at_every_look(tolerance: float, **options) -> sx.stopping.Stopped:
    return sx.until(gaussian(), COSINE, tolerance, FAMILY, **options)


def test_it_stops_at_the_second_look_in_a_row_that_is_precise() -> None:
    found = at_every_look(0.1)
    assert found.precise and found.reason == "precise"
    precise = [look.precise for look in found.looks]
    assert precise[-2:] == [True, True]
    assert not any(first and second for first, second in pairwise(precise[:-1]))
    assert (found.looks[-1].half <= found.looks[-1].tolerance).all()


def test_draws_beyond_the_last_look_are_used() -> None:
    """Of a run that has ended, 20 times as many as two looks need."""
    found = sx.until([*gaussian(batch=1000, count=2)], COSINE, 0.1, FAMILY)
    assert found.precise
    few, last = found.looks[-2:]
    assert few.draws <= 1000 and last.draws == found.sample.size == 4000
    assert last.estimate.mcse < few.estimate.mcse


def test_looks_are_at_least_a_quarter_of_the_draws_apart() -> None:
    draws = [look.draws for look in at_every_look(0.03).looks]
    assert draws[0] == LEAST and len(draws) > 3
    assert all(later >= 1.25 * earlier for earlier, later in pairwise(draws))


def test_the_reported_errors_are_the_larger_of_the_last_two_looks() -> None:
    found = at_every_look(0.1)
    before, last = found.looks[-2:]
    scaled = before.estimate.mcse * np.sqrt(before.draws / last.draws)
    assert np.array_equal(found.estimate.mcse, np.maximum(last.estimate.mcse, scaled))
    assert np.array_equal(found.estimate.value, last.estimate.value)
    small = replace(before, estimate=replace(before.estimate, mcse=before.estimate.mcse / 100))
    assert np.array_equal(with_errors_of_two([small, last]).mcse, last.estimate.mcse)
    large = replace(before, estimate=replace(before.estimate, mcse=before.estimate.mcse * 10))
    wide = with_errors_of_two([large, last])
    assert np.allclose(wide.mcse, 10 * scaled)
    assert np.allclose(wide.worth, (wide.plain_mcse / wide.mcse) ** 2)


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (1.0004, "is just above it"),
        (1.04, "is 1.04 times too wide"),
        (781.5, "is 781 times too wide"),
    ],
)
def test_the_distance_is_told_in_plain_numbers(ratio: float, told: str) -> None:
    look = at_every_look(0.1).looks[-1]
    assert replace(look, half=look.tolerance * ratio).distance.endswith(f"that of cos {told}")


def test_few_effective_draws_are_not_enough() -> None:
    """The same look is precise with enough effective draws, and not with one fewer."""
    look = at_every_look(0.1).looks[-1]
    few = replace(look.estimate, plain_ess=np.full(1, LEAST - 1.0))
    enough = replace(look.estimate, plain_ess=np.full(1, float(LEAST)))
    assert replace(look, estimate=enough).precise
    assert not replace(look, estimate=few).precise
    assert "fewer than 100 effective draws" in repr(replace(look, estimate=few))


def test_chains_that_disagree_stop_the_run() -> None:
    found = sx.until(gaussian(shift=3.0), COSINE, 0.5, FAMILY, audit="off")
    assert found.reason == "chains" and not found.precise
    assert "the chains disagree" in repr(found)
    assert len(found.looks) >= 2 and found.looks[-1].estimate.plain_rhat[0] > 1.1


def test_wrong_scores_are_refused_at_the_first_look() -> None:
    wrong = (sx.Sample(batch.draws, -batch.scores) for batch in gaussian())
    with pytest.raises(sx.AuditError):
        sx.until(wrong, COSINE, 0.1)


@pytest.mark.parametrize(
    ("budget", "reason"), [({"draws": 300}, "draws"), ({"seconds": 1e-9}, "seconds"), ({}, "ended")]
)
def test_budgets_and_the_end_of_the_draws(budget: dict, reason: str) -> None:
    found = sx.until(gaussian(count=5), COSINE, 1e-6, FAMILY, **budget)
    assert found.reason == reason and not found.precise
    assert found.sample.size == {"draws": 300, "seconds": 100, "ended": 500}[reason]
    assert "cos" in repr(found) and "intervals within the tolerance" in repr(found)


def test_a_budget_that_is_met_with_precision_is_precise() -> None:
    found = sx.until(gaussian(), COSINE, 0.5, FAMILY, draws=100)
    assert found.precise and len(found.looks) == 1


def test_a_reason_needs_two_looks_unless_it_is_the_last() -> None:
    look = at_every_look(0.1).looks[-1]
    far = replace(look, tolerance=look.half / 10)
    assert reason_to_stop([look]) is None and reason_to_stop([look], "ended") == "precise"
    assert reason_to_stop([far, look]) is None and reason_to_stop([look, look]) == "precise"
    assert reason_to_stop([look, far], "draws") == "draws"
    apart = replace(far, apart=True)
    assert reason_to_stop([far, apart]) is None and reason_to_stop([apart, apart]) == "chains"


@pytest.mark.parametrize("unit", ["sd", "absolute", "relative"])
def test_the_units_of_a_tolerance(unit: str) -> None:
    found = sx.until(gaussian(1), {"a": lambda x: 5 + 3 * np.cos(x[0])}, 0.05, FAMILY, unit=unit)
    last = found.looks[-1]
    sd = float(last.estimate.plain_mcse[0] * np.sqrt(last.estimate.plain_ess[0]))
    scale = {"sd": sd, "absolute": 1.0, "relative": float(last.estimate.value[0])}[unit]
    assert np.allclose(last.tolerance, 0.05 * scale)
    assert abs(float(found.estimate.value[0]) - 5 - 3 * np.exp(-0.5)) < 2 * 0.05 * scale


def test_a_tolerance_for_each_name() -> None:
    f = {"cos": COSINE["cos"], "x": lambda x: x[0]}
    found = sx.until(gaussian(), f, {"cos": 0.1, "x": 0.5}, FAMILY, unit="absolute")
    assert found.looks[-1].tolerance.tolist() == [0.1, 0.5]
    with pytest.raises(ValueError, match=r"no tolerance for x: give one for each"):
        sx.until(gaussian(), f, {"cos": 0.1}, FAMILY)


def test_plain_draws_are_what_plain_averages_need() -> None:
    """The number extrapolated from the last look, and its half width at that number."""
    found = at_every_look(0.05)
    needed = int(found.plain_draws[0])
    x = np.concatenate([batch.draws for batch in gaussian(3, needed // 4, count=1)], axis=1)
    plain = sx.chains.chain_statistics(np.cos(x[..., :1]))
    half = 1.96 * float(plain.mcse[0])
    assert needed > 2 * found.sample.size
    assert 0.8 < half / found.looks[-1].tolerance[0] < 1.25


def test_the_number_of_draws_is_extrapolated() -> None:
    look = at_every_look(0.1).looks[0]
    twice = replace(look, half=2 * look.tolerance)
    assert expected_draws([twice]) == pytest.approx(4 * look.draws)
    slow = replace(look, draws=2 * look.draws, half=1.9 * look.tolerance)
    assert expected_draws([twice, slow]) == pytest.approx(2 * look.draws * 1.9**2)
    fast = replace(look, draws=2 * look.draws, half=look.half * 0 + 1.1 * look.tolerance)
    assert expected_draws([twice, fast]) < 2 * look.draws * 1.1**2


def test_constants_are_precise_at_once() -> None:
    found = sx.until(gaussian(), {"two": lambda x: 0 * x[0] + 2.0}, 0.1, FAMILY)
    assert found.precise and len(found.looks) == 2 and found.plain_draws[0] == 0


def test_batches_may_be_all_draws_so_far_and_keep_the_training_points() -> None:
    rng = np.random.default_rng(5)
    x, warm = rng.normal(size=(4, 500, 2)), rng.normal(size=(1, 100, 2))
    growing = [sx.Sample(x[:, :n], -x[:, :n]) for n in range(25, 501, 25)]
    growing[0] = growing[0].with_training(sx.Sample(warm, -warm))
    parts = [sx.Sample(x[:, n - 25 : n], -x[:, n - 25 : n]) for n in range(25, 501, 25)]
    parts[0] = growing[0]
    one, other = (sx.until(each, COSINE, 0.05, FAMILY) for each in (growing, parts))
    assert np.array_equal(one.sample.draws, other.sample.draws)
    assert [part.sample.training[0].size for part in (one, other)] == [100, 100]
    assert np.array_equal(one.estimate.value, other.estimate.value)


def test_looks_are_told_as_they_are_made() -> None:
    told: list[sx.stopping.Look] = []
    found = at_every_look(0.1, on_look=told.append)
    assert tuple(told) == found.looks and "100 draws: " in repr(told[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sx.until(gaussian(), COSINE, 0.0), r"tolerance=0.0: give half the width"),
        (lambda: sx.until(gaussian(), COSINE, float("nan")), r"tolerance=nan: give half"),
        (lambda: sx.until([], COSINE), r"no draws: give one that yields samples"),
        (
            lambda: sx.until(gaussian(), COSINE, {"cos": 0.1, "sine": 0.1}),
            "tolerance names 'sine', and the integrands are",
        ),
    ],
)
def test_wrong_arguments_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("sx.until([], unit='percent')", "unit='percent': use 'sd', 'absolute' or 'relative'."),
        (
            "sx.until([], sx.data.Integrands(x, ('f',)))",
            "more draws will follow: give names or functions.",
        ),
    ],
)
def test_wrong_types_are_refused(call: str, message: str) -> None:
    """In a process of its own: the tests' checks of types would refuse them first."""
    code = f"import numpy as np, steinax as sx; x = np.zeros((4, 25, 1)); {call}"
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode and message in done.stderr


def test_sources_that_cannot_go_on_are_refused() -> None:
    sample = next(gaussian())
    with pytest.raises(TypeError, match="no draws will be added: use estimate"):
        sx.until(sample, COSINE)
    with pytest.raises(TypeError, match="let it yield samples, such as from_numpyro"):
        sx.until([sample, np.zeros((4, 25, 2))], COSINE, 1e-6)
