"""One compilation serves all folds, all length-scales and all penalty strengths.

Families that count how often jax traces their formulas.
"""

from collections import Counter

import jax
import numpy as np
import optax
import pytest

import steinax as sx
import targets

pytestmark = pytest.mark.slow

TRACED: Counter[str] = Counter()


class CountingKernel(sx.KernelTranslates):
    """Translates of a kernel that count."""

    def features(self, state, x, score):
        TRACED["features"] += isinstance(x, jax.core.Tracer)
        return super().features(state, x, score)

    def feature_matrix(self, state, x, score):
        TRACED["feature_matrix"] += isinstance(x, jax.core.Tracer)
        return super().feature_matrix(state, x, score)


class CountingNetwork(sx.Network):
    """A network that counts."""

    def evaluate(self, state, params, x, score):
        TRACED["evaluate"] += isinstance(x, jax.core.Tracer)
        return super().evaluate(state, params, x, score)


def _kernel(length_scale: float = 1.0) -> CountingKernel:
    return CountingKernel(sx.kernels.SquaredExponential(length_scale), sx.Landmarks(20))


def _network() -> CountingNetwork:
    return CountingNetwork(4, 1)


def _traces(action) -> int:
    """How often formulas were traced while the action ran."""
    TRACED.clear()
    action()
    return TRACED.total()


def _estimate(n: int, folds: int, family, solver) -> int:
    """Traces of one cross-fitted estimate; no other test has samples of this shape."""
    sample = targets.skewed(2).sample(0, chains=1, length=n)
    return _traces(
        lambda: sx.estimate("x", sample, family, solver=solver, split=sx.CrossFit(folds))
    )


SOLVERS = {
    "exact, primal": (_kernel, sx.Exact(dual=False)),
    "exact, dual": (_kernel, sx.Exact(dual=True)),
    "conjugate gradients": (_kernel, sx.ConjugateGradient()),
    "stochastic": (_kernel, sx.Stochastic(epochs=1)),
    "stochastic, optax": (_kernel, sx.Stochastic(optax.sgd(1e-3), epochs=1)),
    # with no draws held out, which could shrink several control variates to zero
    "stochastic, as it is": (_kernel, sx.Stochastic(epochs=1, precondition=False, hold_out=0.0)),
    "stochastic, network": (_network, sx.Stochastic(epochs=1)),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_folds_share_one_compilation(name) -> None:
    make, solver = SOLVERS[name]
    few, many = (_estimate(120, folds, make(), solver) for folds in (3, 6))
    assert few == many
    assert (many == 0) == name.startswith("exact"), "NumPy arrays compile nothing"
    # 113 draws in 6 folds: of 18 or 19, so fitting is traced once and evaluation twice at most
    assert _estimate(113, 6, make(), solver) <= many + 1


@pytest.mark.parametrize("name", SOLVERS)
def test_another_sample_of_the_same_shape_costs_no_compilation(name) -> None:
    make, solver = SOLVERS[name]

    def estimate(seed: int) -> None:
        sample = targets.skewed(2).sample(seed, length=30)
        sx.estimate("x", sample, make(), solver=solver, key=jax.random.key(seed))

    estimate(0)
    assert _traces(lambda: [estimate(seed) for seed in range(1, 4)]) == 0


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "stochastic, network"])
def test_grid_of_hyperparameters_shares_one_compilation(name) -> None:
    _, solver = SOLVERS[name]
    sample = targets.skewed(2).sample(0, length=30)

    def fit(length_scale: float, strength: float) -> float:
        family, penalty = _kernel(length_scale), sx.NativeNorm(strength)
        control = sx.fit("x", sample, family, penalty=penalty, solver=solver)
        return float(control(sample.x, sample.score).std())

    fit(0.5, 1e-3)
    found = set()

    def grid() -> None:
        for length_scale in (0.7, 1.0, 2.0):
            found.update(fit(length_scale, strength) for strength in np.geomspace(1e-5, 1.0, 4))

    assert _traces(grid) == 0
    assert len(found) == 12, "each value has been used, not the first one's program"


def test_grid_of_rates_shares_one_compilation_with_the_penalties_of_a_network() -> None:
    sample = targets.skewed(2).sample(0, length=30)

    def fit(strength: float) -> None:
        solver = sx.Stochastic(epochs=1)
        sx.fit("x", sample, _network(), penalty=sx.MeanSquare(strength), solver=solver)

    fit(0.1)
    assert _traces(lambda: [fit(strength) for strength in (0.01, 1.0)]) == 0
