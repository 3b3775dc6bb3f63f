"""The steps of conjugate gradients for all right-hand sides together."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._types import AnyArray

type Times = Callable[[jax.Array], jax.Array]


class _State(NamedTuple):
    solution: jax.Array
    residual: jax.Array
    direction: jax.Array
    slope: jax.Array  # r' M^-1 r of each column
    gained: jax.Array  # what the steps so far took from the objective
    before: jax.Array  # what the last step took
    open: jax.Array  # columns that are not there yet
    step: jax.Array


def conjugate_gradients(
    times: Times,
    precondition: Times,
    right: AnyArray,
    left_over: Times,
    tolerance: float,
    max_steps: int,
) -> tuple[jax.Array, jax.Array]:
    r"""Solve $B v = b$ for every column $b$, and the number of steps.

    A step along $d$ of length $a = r^\top M^{-1} r / d^\top B d$ lowers $v^\top B v - 2 b^\top v$ by
    $a\, r^\top M^{-1} r$. A column ends when two steps in turn lowered it by less than the square of the
    tolerance times what is left of the objective.

    Args:
        times: the product with $B$, for many columns at once.
        precondition: the product with $M^{-1}$, likewise.
        right: the right-hand sides, (n, k).
        left_over: what is left of the objective, from what the steps have gained: (k,).
        tolerance: relative, of the root of the objective.
        max_steps: the most that are taken.
    """
    advance = partial(_advance, times, precondition, left_over, tolerance)
    start = _start(jnp.asarray(right), precondition(jnp.asarray(right)))
    done = jax.lax.while_loop(
        lambda state: jnp.any(state.open) & (state.step < max_steps), advance, start
    )
    return done.solution, done.step


def _start(right: jax.Array, refined: jax.Array) -> _State:
    slope = jnp.sum(right * refined, axis=0)
    none, much = jnp.zeros_like(slope), jnp.full_like(slope, jnp.inf)
    begin = jnp.zeros((), int)
    return _State(jnp.zeros_like(right), right, refined, slope, none, much, slope > 0, begin)


def _advance(
    times: Times, precondition: Times, left_over: Times, tolerance: float, state: _State
) -> _State:
    """One step of every column that is not there yet."""
    product = times(state.direction)
    curvature = jnp.sum(state.direction * product, axis=0)
    length = jnp.where(state.open, state.slope / jnp.where(curvature > 0, curvature, 1.0), 0.0)
    residual = state.residual - length * product
    refined = precondition(residual)
    slope = jnp.sum(residual * refined, axis=0)
    gain = length * state.slope
    gained = state.gained + gain
    little = tolerance**2 * left_over(gained)
    still = (gain > little) | (state.before > little)
    ahead = slope / jnp.where(state.slope > 0, state.slope, 1.0)
    return _State(
        state.solution + length * state.direction,
        residual,
        refined + ahead * state.direction,
        slope,
        gained,
        gain,
        state.open & still & (slope > 0),
        state.step + 1,
    )
