"""A contract that anyone's family, kernel, solver, split or adapter can be held to.

The checks are those that steinax holds its own parts to. They need no package beside steinax; the
Hypothesis strategies of `steinax.checks.strategies` need `pip install steinax[checks]`.
"""

from ._check import Check, CheckFailed
from ._laws import Shape
from ._outcome import outcome
from ._public import (
    check_adapter,
    check_estimate,
    check_family,
    check_kernel,
    check_objective,
    check_operator,
    check_penalty,
    check_solver,
    check_split,
    checks_for,
)

__all__ = [
    "Check",
    "CheckFailed",
    "Shape",
    "check_adapter",
    "check_estimate",
    "check_family",
    "check_kernel",
    "check_objective",
    "check_operator",
    "check_penalty",
    "check_solver",
    "check_split",
    "checks_for",
    "outcome",
]
