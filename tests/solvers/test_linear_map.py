"""A factorisation that is kept for later integrands gives what a refit gives."""

import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._precision import precision
from steinax.estimation._many import nothing
from steinax.fitting import prepare
from steinax.solvers._linear_map import DualMap, PrimalMap, RefittedMap, linear_map

pytestmark = pytest.mark.slow

X = np.log(np.random.default_rng(0).gamma(3.0, size=(4, 62, 2)))
SAMPLE = sx.Sample(X, 3.0 - np.exp(X))
F = 7.0 + 100 * np.sin(SAMPLE.x @ np.random.default_rng(1).normal(size=(2, 5)))
FOLDS = ((0, 62), (62, 123), (123, 200), (200, 248))


@pytest.mark.parametrize(
    ("family", "penalty", "kind"),
    [
        (sx.Polynomial(2), None, PrimalMap),
        (sx.Polynomial(4), None, PrimalMap),
        (sx.Polynomial(3), sx.NativeNorm(1e-2), PrimalMap),
        (sx.Polynomial(2) + sx.KernelTranslates(), None, DualMap),
        (sx.Polynomial(2), sx.MeanSquare(1e-2), RefittedMap),
    ],
    ids=["degree 2", "degree 4", "penalised", "dual", "refitted"],
)
def test_equals_a_refit(family, penalty, kind: type) -> None:
    with precision(np.float64):
        problem, _ = prepare(nothing(SAMPLE), SAMPLE, family, penalty, None)
        made, _ = linear_map(problem, FOLDS)
        rest, intercepts = made.rest(jnp.asarray(F))
        expected, levels = RefittedMap(problem, FOLDS).rest(jnp.asarray(F))
        weights = np.asarray(made.weights())
    assert isinstance(made, kind)
    size = np.abs(F).max()
    np.testing.assert_allclose(rest, expected, atol=1e-9 * size)
    np.testing.assert_allclose(intercepts, levels, atol=1e-9 * size)
    np.testing.assert_allclose(weights @ F, np.asarray(expected).mean(axis=0), atol=1e-9 * size)
