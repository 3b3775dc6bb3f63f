"""The laws that every operator, kernel and family must obey, each as a check that raises.

They are those of `steinax.checks`. `checks/test_laws.py` applies them to what steinax exports with more
draws and points than the public checks, `checks/test_law_mutants.py` to broken copies.
"""

import jax

import steinax as sx
from steinax.checks._family import check_linear_family
from steinax.checks._kernel import operator_on_functions
from steinax.checks._laws import (
    ON_GRID,
    assert_close,
    autodiff_pairs,
    check_features,
    check_mean_on_draws,
    check_mean_on_grid,
    check_positive,
    check_radial_derivatives,
    check_stein_kernel,
    functions_of,
    pairs,
    points,
    random_params,
)

__all__ = [
    "ON_GRID",
    "assert_close",
    "autodiff_pairs",
    "check_features",
    "check_linear_family",
    "check_mean_on_draws",
    "check_mean_on_grid",
    "check_network",
    "check_positive",
    "check_radial_derivatives",
    "check_stein_kernel",
    "functions_of",
    "operator_on_functions",
    "pairs",
    "points",
    "random_params",
]


def check_network(network: sx.Network, params, x, score) -> None:
    """A network's control variate is the operator applied to the network."""

    def default(x, score):
        return network.operator(lambda z: network.potential(params, z), x, score)

    def found(x, score):
        return network.evaluate(None, params, x, score)

    assert_close(jax.jit(jax.vmap(found))(x, score), jax.jit(jax.vmap(default))(x, score))
