"""`Auto` takes the solver that fits the problem's size, and says so."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks._pinned import run

import steinax as sx
import targets
from full import FULL
from steinax.objectives import default_penalties
from steinax.solvers import Problem


def _problem(family: sx.families.AbstractFamily, n: int, dim: int) -> Problem:
    """A problem of a given shape; only the shapes matter to the choice."""
    x, penalties = np.zeros((n, dim)), default_penalties(family, n, dim)
    return Problem(family, penalties, sx.LeastSquares(), x, x, np.zeros((n, 1)))


@pytest.mark.parametrize(
    "family, n, dim, solver, why",
    [
        (sx.Polynomial(2), 1000, 10, sx.Exact, "65 unknowns"),
        (sx.Polynomial(2), 1000, 500, sx.Exact, "1000 unknowns"),
        (sx.Polynomial(2), 100_000, 90, sx.ConjugateGradient, "4185 unknowns, fewer operations"),
        (sx.Polynomial(2), 1000, 61, sx.ConjugateGradient, "1000 unknowns, fewer"),
        (sx.Polynomial(2), 2000, 200, sx.ConjugateGradient, "2000 unknowns, fewer"),
        (sx.Polynomial(2), 4000, 500, sx.ConjugateGradient, "4000 unknowns, fewer"),
        (sx.Polynomial(2), 10_000, 61, sx.ConjugateGradient, "1952 unknowns, fewer"),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            1000,
            10,
            sx.Exact,
            "1000 unknowns",
        ),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            4000,
            61,
            sx.Exact,
            "4000 unknowns",
        ),
        (sx.Polynomial(3), 100_000, 10, sx.Exact, "285 unknowns"),
        (sx.Polynomial(2), 6000, 120, sx.ConjugateGradient, "6000 unknowns, fewer"),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            4000,
            10,
            sx.Exact,
            "4000 unknowns",
        ),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            16_000,
            10,
            sx.ConjugateGradient,
            "16000 unknowns, fewer",
        ),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0)),
            100_000,
            10,
            sx.Nystrom,
            "too many for a matrix of their pairs, so on landmarks, not exact",
        ),
        (
            sx.KernelTranslates(sx.kernels.SquaredExponential(1.0), sx.Landmarks(300)),
            9000,
            2,
            sx.Exact,
            "300 unknowns",
        ),
        (sx.Network(), 1000, 10, sx.Stochastic, "not linear"),
        (sx.Polynomial(2) + sx.Network(), 1000, 10, sx.Stochastic, "not linear"),
    ],
    ids=str,
)
def test_choice_goes_by_size_and_kind(family, n, dim, solver, why) -> None:
    chosen, reason = sx.Auto().choose(_problem(family, n, dim))
    assert isinstance(chosen, solver)
    assert why in reason


@pytest.mark.parametrize("family", [sx.Polynomial(2), sx.KernelTranslates()], ids=repr)
def test_is_the_solver_that_it_chose(family) -> None:
    sample = targets.skewed(3).sample(0)
    f = {"sine": lambda x: jnp.sin(x[0])}
    auto, exact = sx.fit(f, sample, family), sx.fit(f, sample, family, solver=sx.Exact())
    assert np.array_equal(auto(sample.x, sample.score), exact(sample.x, sample.score))
    assert auto.note.startswith("solved exactly") and auto.note.endswith(_sizes(exact.note))
    ours, theirs = sx.estimate(f, sample, family), sx.estimate(f, sample, family, solver=sx.Exact())
    assert ours.value == theirs.value
    assert "folds, solved exactly" in ours.note


def _sizes(note: str) -> str:
    """How many coefficients and draws a note names, after the method."""
    return note.partition(": ")[2]


def test_many_integrands_or_folds_share_a_factorisation() -> None:
    problem = _problem(sx.Polynomial(2), 1000, 61)
    many = replace(problem, f=np.zeros((1000, 100)))
    assert isinstance(sx.Auto().choose(many)[0], sx.Exact)
    assert isinstance(sx.Auto().choose(problem, folds=10)[0], sx.Exact)


@pytest.mark.slow
@pytest.mark.alone
def test_the_choice_is_within_a_third_of_the_fastest() -> None:
    """CPU seconds of `solve` where a fit comes within 5% of the exact one's held-out variance.

    The solver that is chosen is timed by itself, and so is the choice, which takes milliseconds. CI takes
    the four cells of up to 2,000 draws.
    """
    rows = run("speed.auto", {"rounds": 3, "largest": 4000 if FULL else 2000})
    chosen = [row for row in rows if row["solver"] == "Auto"]
    assert len(chosen) == (7 if FULL else 4)
    for row in chosen:
        (same,) = [
            other
            for other in rows
            if other is not row
            and (other["family"], other["n"], other["d"]) == (row["family"], row["n"], row["d"])
            and (
                row["note"].endswith(f": {other['note']}")
                if row["note"].startswith("chosen for ")
                else other["solver"] == "Exact"
            )
        ]
        assert same["near"] and same["ratio"] <= row["at most"] == 1.3, same
        assert row["choosing"] <= 0.3 * same["seconds"], (row, same)


def test_works_for_what_is_not_linear() -> None:
    sample = targets.skewed(2).sample(0)
    control = sx.fit("x", sample, sx.Network(4, 1))
    assert "not linear" in control.note and "stochastic" in control.note
