"""The hyper-parameters of a family, as logarithms to be optimised."""

import equinox as eqx
import jax
import jax.numpy as jnp

from .._types import PyTree
from ..families import AbstractFamily
from ..operators import AbstractOperator


def log_hyperparameters(family: AbstractFamily) -> PyTree:
    """The logarithms of every (positive) hyper-parameter; None stands for everything else.

    An operator's factor is no hyper-parameter: it may be negative, and the coefficients absorb it.
    """

    def is_operator(node: PyTree) -> bool:
        return isinstance(node, AbstractOperator)

    def spec(node: PyTree) -> PyTree:
        keep = not is_operator(node) and eqx.is_inexact_array(node)
        return jax.tree.map(lambda _: keep, node) if is_operator(node) else keep

    chosen = jax.tree.map(spec, family, is_leaf=is_operator)
    hyper = eqx.filter(family, chosen)
    return jax.tree.map(lambda leaf: jnp.log(jnp.asarray(leaf)), hyper)


def with_hyperparameters(family: AbstractFamily, log_hyper: PyTree) -> AbstractFamily:
    """The family with other hyper-parameters; itself when none are given."""
    if log_hyper is None:
        return family
    return eqx.combine(jax.tree.map(jnp.exp, log_hyper), family)
