from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..families import Polynomial
from ..objectives import AbstractObjective, AbstractPenalty, MeanSquare
from ._check import Law, expect, law
from ._laws import assert_close, points, random_params
from ._targets import skewed


def _rest() -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=(40, 3)))


@law("give one loss per integrand, zero where f - g is the constant c on every draw.")
def is_zero_for_a_perfect_fit(objective: AbstractObjective) -> None:
    """No loss where nothing is left, and a loss above zero elsewhere."""
    c = jnp.array([1.0, -2.0, 3.0])
    perfect = objective(jnp.broadcast_to(c, (40, 3)), c)
    expect(perfect.shape == (3,), f"3 integrands give a loss of shape {perfect.shape}")
    expect(np.all(np.abs(perfect) <= 1e-12), f"a perfect fit has a loss of {perfect}")
    loss = objective(_rest(), jnp.mean(_rest(), axis=0))
    expect(np.all(loss > 0), f"a fit that is not perfect has a loss of {loss}")


@law("average over draws: their order and other integrands must not matter.")
def treats_draws_and_integrands_alike(objective: AbstractObjective) -> None:
    """In another order of draws or integrands the losses are the same."""
    rest, c = _rest(), jnp.array([0.1, 0.2, 0.3])
    loss, order = objective(rest, c), np.random.default_rng(1).permutation(40)
    assert_close(objective(rest[order], c), loss)
    assert_close(objective(rest[:, ::-1], c[::-1]), loss[::-1])


@law("the loss has a finite gradient: write it with jax.numpy.")
def can_be_minimised(objective: AbstractObjective) -> None:
    """Solvers need a gradient."""
    gradient = jax.jit(jax.grad(lambda r: jnp.sum(objective(r, jnp.zeros(3)))))(_rest())
    expect(np.all(np.isfinite(gradient)), "the gradient is not finite")


@law("with `is_quadratic`, the loss times `penalty_factor` is the mean of (r - c)^2.")
def is_the_quadratic_form_it_says(objective: AbstractObjective) -> None:
    """Solvers of linear systems see `penalty_factor`, never the loss itself."""
    if not objective.is_quadratic:
        return
    factor = objective.penalty_factor(40)
    expect(np.isfinite(factor) and factor > 0, f"penalty_factor(40) is {factor}")
    rest = _rest()
    c = jnp.mean(rest, axis=0)
    assert_close(objective(rest, c) * factor, jnp.mean((rest - c) ** 2, axis=0))


def _penalised(penalty: AbstractPenalty) -> Callable[[object], jax.Array]:
    """The penalty of a polynomial's parameters."""
    x, score = points(skewed(2), 4, 30)
    family = Polynomial(2)

    def value(params):
        values = family.apply(None, params, x, score)
        return jnp.sum(penalty(family, None, params, values))

    return value


def _params() -> jax.Array:
    return random_params(Polynomial(2), None, jnp.zeros((2, 2)))


@law("no parameters, no penalty; others have one of zero or more.")
def is_zero_at_zero(penalty: AbstractPenalty) -> None:
    """Plain Monte Carlo is never punished."""
    value, params = _penalised(penalty), _params()
    expect(abs(value(0 * params)) <= 1e-300, f"zero parameters cost {value(0 * params)}")
    expect(value(params) >= 0, f"some parameters cost {value(params)}")


@law("with `is_quadratic`, it is `strength` times the quadratic form of `gram`, or of g.")
def is_the_form_it_says(penalty: AbstractPenalty) -> None:
    """Solvers of linear systems see `strength` and `gram`, never the penalty itself."""
    if not penalty.is_quadratic:
        return
    value, params = _penalised(penalty), _params()
    assert_close(value(2 * params), 4 * value(params))
    assert_close(value(-params), value(params))
    if isinstance(penalty, MeanSquare):
        return
    gram = penalty.gram(Polynomial(2), None, 2)
    if gram is not None:
        expect(bool(np.linalg.eigvalsh(gram).min() > 0), "`gram` is not positive definite")
    square = params**2 if gram is None else params * (gram @ params)
    assert_close(value(params), jnp.sum(penalty.strength * square))


@law("write it with jax.numpy, for any parameters.")
def has_a_gradient(penalty: AbstractPenalty) -> None:
    """Compiled, it can be differentiated."""
    gradient = jax.jit(jax.grad(_penalised(penalty)))(_params())
    expect(np.all(np.isfinite(gradient)), "the gradient is not finite")


@law("with `is_quadratic`, `strength` is a number of zero or more.")
def has_a_strength(penalty: AbstractPenalty) -> None:
    """Solvers of linear systems read it."""
    if not penalty.is_quadratic:
        return
    strength = float(penalty.strength)
    expect(np.isfinite(strength) and strength >= 0, f"the strength is {strength}")


OBJECTIVE_LAWS: tuple[Law, ...] = (
    is_zero_for_a_perfect_fit,
    treats_draws_and_integrands_alike,
    can_be_minimised,
    is_the_quadratic_form_it_says,
)
PENALTY_LAWS: tuple[Law, ...] = (
    is_zero_at_zero,
    is_the_form_it_says,
    has_a_gradient,
    has_a_strength,
)
