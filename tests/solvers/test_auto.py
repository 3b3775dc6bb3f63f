"""`Auto` takes the solver that fits the problem's size, and says so."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
import targets
from steinax.objectives import default_penalties
from steinax.solvers import Problem


def _problem(family: sx.AbstractFamily, n: int, dim: int) -> Problem:
    """A problem of a given shape; only the shapes matter to the choice."""
    x, penalties = np.zeros((n, dim)), default_penalties(family, n, dim)
    return Problem(family, penalties, sx.LeastSquares(), x, x, np.zeros((n, 1)))


@pytest.mark.parametrize(
    "family, n, dim, solver, why",
    [
        (sx.Polynomial(2), 1000, 10, sx.Exact, "65 unknowns"),
        (sx.Polynomial(2), 1000, 500, sx.Exact, "1000 unknowns"),
        (sx.Polynomial(2), 100_000, 90, sx.Exact, "4185 unknowns"),
        (sx.Polynomial(2), 6000, 120, sx.ConjugateGradient, "6000 unknowns, too many"),
        (sx.KernelTranslates(sx.SquaredExponential(1.0)), 5000, 2, sx.Exact, "5000 unknowns"),
        (
            sx.KernelTranslates(sx.SquaredExponential(1.0)),
            5001,
            2,
            sx.ConjugateGradient,
            "5001 unknowns, too many",
        ),
        (
            sx.KernelTranslates(sx.SquaredExponential(1.0), sx.Landmarks(300)),
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
    assert auto.note.startswith("chosen for ") and auto.note.endswith(exact.note)
    ours, theirs = sx.estimate(f, sample, family), sx.estimate(f, sample, family, solver=sx.Exact())
    assert ours.value == theirs.value
    assert "chosen for " in ours.note


def test_works_for_what_is_not_linear() -> None:
    sample = targets.skewed(2).sample(0)
    control = sx.fit("x", sample, sx.Network(4, 1))
    assert "not linear" in control.note and "stochastic" in control.note
