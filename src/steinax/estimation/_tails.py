"""Leaving out what has tails too heavy for its averages."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

import equinox as eqx
import jax
import numpy as np

from .._types import Points
from ..auditing import heavy
from ..families import AbstractFamily, Masked, Polynomial
from ..solvers import Problem
from ..solvers._rows import scaled
from ._splits import Controlled

BETTER = 0.1  # of the variance without heavy columns, below which they are used nevertheless
LIGHT = 2  # the degree up to which a polynomial's columns are taken as they are


def without_heavy(
    problem: Problem, control: Callable[[Problem], Controlled]
) -> tuple[Controlled, str]:
    r"""Control without a polynomial's columns of heavy tails, and say how many were left out.

    The average of a column converges slowly, and its standard error is too small, if $\hat k$ of its
    generalised Pareto tail is above 1/3. High powers of light-tailed draws look like that too, but
    then the fit with all columns leaves far less on held-out draws: where it leaves less than a tenth
    of the variance, it is used for that integrand. Up to degree 2 the score grows as slowly as the
    density's tails are heavy, and nothing is left out.

    Args:
        problem: the draws, integrands and family.
        control: fits a problem, and takes the control variates away from f.
    """
    whole, family = control(problem), problem.family
    if not may_be_heavy(family):
        return whole, ""
    columns = scaled(_columns(family, problem.x, problem.score), problem.root)
    bad = heavy(np.asarray(columns, np.float64), errors=0.0)
    if not bad.any():
        return whole, ""
    light = Masked(family, np.asarray(~bad, problem.x.dtype))
    part = control(replace(problem, family=light))
    keep = _variance(whole) < BETTER * _variance(part)
    if keep.all():
        return whole, ""
    mixed = replace(
        whole,
        rest=np.where(keep, whole.rest, part.rest),
        instability=np.where(keep, whole.instability, part.instability),
    )
    return mixed, left_out(bad, keep)


def may_be_heavy(family: AbstractFamily) -> TypeGuard[Polynomial]:
    """Whether the tails of a family's columns are looked at: those of polynomials above degree 2."""
    return isinstance(family, Polynomial) and family.degree > LIGHT


def left_out(bad: np.ndarray, keep: np.ndarray) -> str:
    """How many columns were left out, and for how many integrands they were not kept."""
    which = "" if not keep.any() else f" for {int((~keep).sum())} of {len(keep)} integrands"
    count = f"{int(bad.sum())} of {len(bad)} columns"
    return f"\n{count} left out{which}: their tails are too heavy (k-hat above 1/3)"


def _variance(controlled: Controlled) -> np.ndarray:
    """Of the estimates, autocorrelation left aside."""
    rest = np.asarray(controlled.rest, np.float64)
    return rest.var(axis=(0, 1)) / rest[..., 0].size + controlled.instability


@eqx.filter_jit
def _columns(family: Polynomial, x: Points, score: Points) -> jax.Array:
    return family.feature_matrix(None, x, score)
