"""The program that is compiled for cross-fitting does not grow with the number of folds."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._precision import precision
from steinax.estimation._many import nothing
from steinax.fitting import prepare
from steinax.solvers import Folds
from steinax.solvers._exact import _held_out
from steinax.solvers._linear_map import PrimalMap, _dual_blocks, _primal_map

X = np.random.default_rng(0).normal(size=(4, 60, 1))
SAMPLE = sx.Sample(X, -X)


def _lines(function, *arguments) -> int:
    """How long the program is that jax gives to the compiler."""
    return function.lower(*arguments).as_text().count("\n")


def _folds(count: int) -> Folds:
    return sx.CrossFit(count).boundaries(chains=4, length=60)


@pytest.mark.parametrize(
    "of", ["primal", "dual", "kept, primal", "kept, dual", "another integrand"]
)
def test_more_folds_do_not_make_a_longer_program(of: str) -> None:
    def lines(count: int) -> int:
        problem, folds = (
            prepare(nothing(SAMPLE), SAMPLE, sx.Polynomial(2), None, None)[0],
            _folds(count),
        )
        if of in ("primal", "dual"):
            return _lines(_held_out, problem, of == "dual", folds)
        if of != "another integrand":
            return _lines(_primal_map if "primal" in of else _dual_blocks, problem, folds)
        made = _primal_map(problem, folds)
        return _lines(PrimalMap.rest, made, jnp.zeros((240, 1)))

    with precision(np.float64):
        assert lines(40) == lines(4)
