"""What a linear family may override, held to what it is by default."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from ..families import AbstractLinearFamily, AllDraws, KernelTranslates
from ..kernels import resolve
from ._check import expect
from ._laws import assert_close, autodiff_pairs, check_positive, default_features, points
from ._targets import skewed

CROWD = 20  # points on which closed forms are compared


def check_linear_family(family: AbstractLinearFamily) -> None:
    """Whatever a family overrides is what it was by default; all of it from one compiled call."""
    x, score = points(skewed(3), 7, CROWD)
    y, score_y = points(skewed(3), 9, CROWD + 3)
    family = resolve(family, x)
    state = family.setup(x, score)
    size = family.size(state, 3)
    count = jax.eval_shape(lambda x, score: family.features(state, x, score), x[0], score[0]).shape
    expect(count == (size,), f"`size` is {size}, and `features` gives {count}")
    rng = np.random.default_rng(8)
    coef, dual = jnp.asarray(rng.normal(size=(size, 2))), jnp.asarray(rng.normal(size=(CROWD, 2)))
    made = jax.jit(partial(_everything, family))(x, score, y, score_y, coef, dual)
    features = made["features"]
    _same("features", features, made["default features"])
    _same("apply", made["applied"], features @ coef)
    _same("evaluate", made["one point"], features[0] @ coef)
    _same("adjoint", made["adjoint"], made["features at x"].T @ dual)
    _same("cross_gram", made["kernel"], made["default kernel"])
    _same("from_dual", made["from dual"], made["kernel at x"] @ dual, 1e-9)
    check_positive(made["kernel at x"])
    if made["gram"] is not None:
        check_positive(made["gram"])


def _same(method: str, found: jax.Array, expected: jax.Array, tolerance: float = 1e-10) -> None:
    try:
        assert_close(found, expected, tolerance)
    except AssertionError as error:
        raise AssertionError(f"`{method}` is {error}") from None


def _everything(family: AbstractLinearFamily, x, score, y, score_y, coef, dual) -> dict:
    """What the laws of a linear family speak of, for one that is set up on x."""
    state = family.setup(x, score)
    from_dual = family.from_dual(state, x, score, dual)
    return {
        "features": family.feature_matrix(state, y, score_y),
        "default features": default_features(family, state, y, score_y),
        "applied": family.apply(state, coef, y, score_y),
        "one point": family.evaluate(state, coef, y[0], score_y[0]),
        "adjoint": family.adjoint(state, x, score, dual),
        "features at x": family.feature_matrix(state, x, score),
        "kernel": family.cross_gram(state, x, score, y, score_y),
        "default kernel": _span_kernel(family, state, x, score, y, score_y),
        "kernel at x": family.cross_gram(state, x, score, x, score),
        "from dual": family.apply(state, from_dual, x, score),
        "gram": family.gram(state),
    }


def _span_kernel(family: AbstractLinearFamily, state, x, score, y, score_y) -> jax.Array:
    """The kernel whose translates the family spans, from its definition."""
    if len(family.terms) > 1:
        terms = zip(family.terms, state, strict=True)
        return sum(_span_kernel(*one, x, score, y, score_y) for one in terms)  # type: ignore
    if isinstance(family, KernelTranslates) and isinstance(family.centres, AllDraws):
        return autodiff_pairs(family.kernel, family.operator, x, score, y, score_y)
    return AbstractLinearFamily.cross_gram(family, state, x, score, y, score_y)
