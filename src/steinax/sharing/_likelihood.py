"""The relation between tasks that makes the integrands most probable."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._types import AnyArray, Values
from ..solvers._dual import Dual, with_columns
from ..solvers._roots import cholesky_root
from ._coupling import Coupling, Grams

STEPS = 60
LIMIT = 25.0  # of the logarithm of signal over noise


def system(coupling: Coupling, grams: Grams, task: AnyArray, count: int) -> Dual:
    """The factorised system of all tasks, with an intercept for each."""
    columns = jax.nn.one_hot(task, count, dtype=grams.dtype)
    return with_columns(cholesky_root(coupling.kernel(grams, task, task)), columns)


@eqx.filter_jit
def objective(
    coupling: Coupling, grams: Grams, task: AnyArray, f: Values, count: int
) -> tuple[jax.Array, Coupling]:
    r"""Minus the logarithm of the posterior density of a coupling, and its gradient.

    The likelihood is that of the contrasts of $f$ that no intercept touches, with the size of the
    noise at its best value. With $P$ the matrix of what is left, $q = \sum f^\top P f$ over $k$
    integrands and $m = k (n - T)$,

    $$ \tfrac{k}{2} \left( \log |A| + \log |H^\top A^{-1} H| \right) + \tfrac{m}{2} \log q , $$

    whose gradient is that of $\tfrac12 \operatorname{tr}(S A)$ with $S = k P - \tfrac{m}{q} P f f^\top P$
    held fixed: no derivative of a factorisation is needed.
    """
    n, k = f.shape
    dual = system(coupling, grams, task, count)
    _, alpha = dual.coefficients(f)
    rows = dual.root.inverse().T
    free = rows @ dual.basis
    m, q = k * (n - count), jnp.maximum(jnp.sum(f * alpha), 1e-300)
    weights = k * (rows @ rows.T - free @ free.T) - m / q * alpha @ alpha.T
    sizes = jnp.sum(jnp.log(jnp.abs(jnp.diag(dual.upper)))) - jnp.sum(jnp.log(jnp.diag(rows)))

    def fixed(one: Coupling) -> jax.Array:
        return jnp.sum(weights * one.kernel(grams, task, task)) / 2 + one.improbability()

    value = k * sizes + m / 2 * jnp.log(q) + coupling.improbability()
    return value, jax.grad(fixed)(coupling)


def learn(start: Coupling, grams: Grams, task: AnyArray, f: Values, count: int) -> Coupling:
    """The most probable coupling, by L-BFGS.

    Args:
        start: where to begin; a relation that is given stays.
        grams: the kernels of all terms on the training rows, (term, n, n).
        task: of each row.
        f: the integrands, of variance about one.
        count: of tasks.
    """
    from scipy.optimize import minimize

    flat, back = ravel_pytree(jax.tree.map(jnp.asarray, start))

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = objective(back(jnp.asarray(v)), grams, task, f, count)
        return float(found), np.asarray(ravel_pytree(slope)[0])

    marks = ravel_pytree(eqx.tree_at(lambda c: c.log_gain, _zeros(start), jnp.ones(())))[0]
    bounds = [(-LIMIT, LIMIT) if mark else (None, None) for mark in np.asarray(marks)]
    how = {"maxiter": STEPS, "ftol": 1e-6}
    found = minimize(
        value, np.asarray(flat), jac=True, method="L-BFGS-B", bounds=bounds, options=how
    )
    return back(jnp.asarray(found.x))


def _zeros(coupling: Coupling) -> Coupling:
    return jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf)), coupling)
