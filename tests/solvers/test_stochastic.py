"""The stochastic solver: with no setting it is as good as the exact one; with settings it obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steinax as sx
import targets
from full import FULL, only_full
from heldout import CELLS, FAMILIES, FUNCTIONS, Fresh, excess

QUICK = (("Polynomial", targets.banana), ("KernelTranslates", targets.skewed))
NETWORK_FUNCTIONS = {name: FUNCTIONS[name] for name in ("sine", "exponential", "norm")}
SMOOTH = {"sine": lambda x: jnp.sin(x[0] + x[1])}


def _skewed(length: int = 250, dim: int = 10) -> tuple[targets.Target, sx.Sample]:
    target = targets.skewed(dim)
    return target, target.sample(0, length=length)


def _left(target: targets.Target, control: sx.ControlVariate, f=SMOOTH) -> np.ndarray:
    """The share of the variance that is left on fresh draws."""
    fresh = Fresh(target, f, 0)
    return fresh.left(control) / fresh.plain


@pytest.mark.slow
@pytest.mark.parametrize("family, make", QUICK)
def test_no_setting_comes_within_a_twentieth_of_the_exact_fit(family, make) -> None:
    found = excess(make(10), FAMILIES[family](), 1000, seed=0)
    assert max(found.values()) <= 1.05, found


def _grid() -> list:
    """Every target in every cell; in the larger ones a single target, unless all is wanted."""
    large = targets.MAKERS if FULL else (targets.banana,)
    return [
        (m, dim, make)
        for m, dim in CELLS
        for make in (targets.MAKERS if (m, dim) == CELLS[0] else large)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("m, dim, make", _grid())
def test_every_cell_comes_within_a_twentieth_of_the_exact_fit(family, make, m, dim) -> None:
    found = excess(make(dim), FAMILIES[family](), m, seed=1)
    assert max(found.values()) <= 1.05, found


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_one_integrand_is_fitted_as_among_many(family) -> None:
    """One integrand goes through vectors, many through matrices: the same batches, the same fit."""
    _, sample = _skewed(length=100)
    x, score = sample.x[:50], sample.score[:50]
    many = sx.fit(FUNCTIONS, sample, FAMILIES[family](), solver=sx.Stochastic())(x, score)
    for column, name in ((0, "sine"), (5, "norm")):
        one = sx.fit({name: FUNCTIONS[name]}, sample, FAMILIES[family](), solver=sx.Stochastic())
        assert np.allclose(one(x, score)[:, 0], many[:, column], atol=1e-7 * np.ptp(many))


def test_key_decides_the_batches() -> None:
    _, sample = _skewed(dim=2)

    def intercept(seed: int) -> float:
        solver = sx.Stochastic(optax.sgd(1e-2), epochs=2)
        key = jax.random.key(seed)
        return sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver, key=key).intercept[0]

    assert intercept(0) == intercept(0)
    assert intercept(0) != intercept(1)


def test_one_epoch_is_enough_where_the_coordinates_are_exact() -> None:
    """Point-SAGA starts from the minimum of the whitened problem."""
    _, sample = _skewed(dim=2)
    family = sx.Polynomial(2) + sx.KernelTranslates(sx.kernels.DampedGaussian(0.1, 2.0))
    penalty = (sx.NoPenalty(), sx.NativeNorm(1e-6))
    fitted = [
        sx.fit(SMOOTH, sample, family, penalty=penalty, solver=solver).intercept
        for solver in (sx.Exact(), sx.Stochastic(epochs=1))
    ]
    np.testing.assert_allclose(*fitted, rtol=1e-6)


@pytest.mark.parametrize(
    "precondition, times", [(True, 1.2), (False, 2.0)], ids=["whitened", "as it is"]
)
@pytest.mark.parametrize("optimiser", [optax.sgd(3e-3), optax.adam(1e-2)], ids=["sgd", "adam"])
def test_any_optimiser_of_optax_works(optimiser, precondition, times) -> None:
    """Without whitening plain descent is still on its way after as many epochs: hence the whitening."""
    target, sample = _skewed(dim=3)
    solver = sx.Stochastic(optimiser, precondition=precondition, epochs=50)
    control = sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver)
    exact = sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=sx.Exact())
    assert "the given optimiser" in control.note
    assert _left(target, control) < times * _left(target, exact)


def _counting() -> optax.GradientTransformation:
    """It ignores the gradient and adds one to every coordinate at every step."""

    def update(updates, state, params=None):
        return jax.tree.map(jnp.ones_like, updates), state

    return optax.GradientTransformation(lambda params: (), update)


def test_averaging_is_the_mean_of_the_second_half() -> None:
    _, sample = _skewed(dim=2)
    steps = 4 * 125

    def at(averaging: bool) -> np.ndarray:
        solver = sx.Stochastic(_counting(), epochs=4, averaging=averaging)
        return sx.fit(SMOOTH, sample, sx.Polynomial(1), solver=solver)(sample.x, sample.score)

    mean = np.arange(steps // 2 + 1, steps + 1).mean()
    assert np.allclose(at(True), mean / steps * at(False), rtol=1e-9)


def test_averaging_takes_the_noise_out_of_plain_descent() -> None:
    target, sample = _skewed(dim=3)

    def left(averaging: bool) -> np.ndarray:
        solver = sx.Stochastic(optax.sgd(3e-2), averaging=averaging)
        return _left(target, sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver))

    assert left(True) < 0.9 * left(False)


def _pausing(steps: int) -> optax.GradientTransformation:
    """Descent that rests from the fourth epoch to the ninth, and goes on faster after it."""
    return optax.sgd(
        lambda step: jnp.where(step < 3 * steps, 1e-4, jnp.where(step < 9 * steps, 0.0, 1e-3))
    )


def test_training_stops_when_patience_runs_out() -> None:
    _, sample = _skewed(dim=2)

    def history(patience: int) -> np.ndarray:
        solver = sx.Stochastic(
            _pausing(125), epochs=15, patience=patience, precondition=False, averaging=False
        )
        return sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver).history

    stopped, patient = history(3), history(10)
    assert np.all(np.diff(stopped) <= 0), "the best so far never gets worse"
    assert np.all(stopped[3:] == stopped[2]), "nothing changes once it has stopped"
    assert patient[-1] < 0.9 * stopped[-1], "and there was more to gain"


@pytest.mark.slow
def test_training_finds_a_better_length_scale() -> None:
    target, sample = _skewed(length=100, dim=2)
    centres = sx.Landmarks(60)
    bad = sx.KernelTranslates(sx.kernels.SquaredExponential(0.1), centres)
    trained = sx.fit(
        SMOOTH, sample, bad, solver=sx.Stochastic(epochs=50, train_hyperparameters=True)
    )
    untrained = sx.fit(SMOOTH, sample, bad, solver=sx.Stochastic(epochs=50))
    assert float(trained.family.kernel.length_scale) > 0.3
    assert _left(target, trained) < 0.5 * _left(target, untrained)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [sx.LeastSquares(), sx.Variance()])
def test_network_learns_under_both_objectives(objective) -> None:
    target, sample = _skewed(dim=2)
    control = sx.fit(SMOOTH, sample, sx.Network(16, 1), objective=objective)
    assert _left(target, control) < 0.1
    assert np.all(np.isfinite(control.history))


@pytest.mark.slow
def test_sum_of_network_and_polynomial_is_trained_together() -> None:
    target, sample = _skewed(dim=2)
    control = sx.fit(SMOOTH, sample, sx.Polynomial(2) + sx.Network(16, 1))
    alone = sx.fit(SMOOTH, sample, sx.Polynomial(2))
    assert _left(target, control) < 0.5 * _left(target, alone)


@pytest.mark.slow
def test_network_keeps_nothing_of_what_cannot_be_learnt() -> None:
    """Noise is no function of the draw: a control variate for it would only add variance."""
    target, sample = _skewed(length=100, dim=10)
    noise = np.random.default_rng(5).normal(size=(4, 100))
    control = sx.fit({"noise": noise}, sample, sx.Network(16, 1))
    fresh = Fresh(target, SMOOTH, 0)
    assert control(fresh.x, fresh.score).var() < 0.02


def _network_left(dim: int, seed: int) -> dict[str, float]:
    target = targets.MAKERS[seed % len(targets.MAKERS)](dim)
    sample, fresh = target.sample(seed, length=250), Fresh(target, NETWORK_FUNCTIONS, seed)
    control = sx.fit(NETWORK_FUNCTIONS, sample, sx.Network(), key=jax.random.key(seed))
    left = fresh.left(control) / fresh.plain
    return dict(zip(NETWORK_FUNCTIONS, left.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("dim, smooth", [(10, 0.2), pytest.param(61, 0.95, marks=only_full)])
def test_network_diverges_for_no_seed(dim, smooth) -> None:
    found = [_network_left(dim, seed) for seed in range(20 if FULL else 4)]
    assert max(max(one.values()) for one in found) < 1.02, found  # false for NaN too
    assert max(one["exponential"] for one in found) < smooth, found


class TestRecord:
    """The paper's own way: all draws, no selection, and every epoch's iterate."""

    def control(self, optimiser=None, **settings) -> sx.ControlVariate:
        _, sample = _skewed(length=50, dim=2)
        solver = sx.Stochastic(optimiser, precondition=False, record=True, **settings)
        family = sx.Polynomial(1) + sx.Polynomial(2)
        return sx.fit(SMOOTH, sample, family, solver=solver)

    def test_the_last_iterate_is_kept_if_nothing_is_held_out(self) -> None:
        """With descent for three epochs and ascent for three, the best iterate is not the last."""
        _, sample = _skewed(length=50, dim=2)
        turning = optax.sgd(lambda step: jnp.where(step < 75, 1e-3, -1e-3))
        held, every = (
            self.control(turning, hold_out=h, epochs=6, averaging=False) for h in (0.1, 0.0)
        )
        for control, kept in ((held, 1 + int(np.argmin(held.training.losses[0]))), (every, 6)):
            iterate = control.after(kept)
            np.testing.assert_array_equal(iterate.intercept, control.intercept)
            np.testing.assert_array_equal(
                iterate(sample.draws, sample.scores), control(sample.draws, sample.scores)
            )
        assert np.argmin(held.training.losses[0]) == np.argmin(every.training.losses[0]) == 2

    @pytest.mark.parametrize(("hold_out", "count"), [(0.0, 200), (0.1, 180)])
    def test_all_draws_are_trained_on_if_nothing_is_held_out(self, hold_out, count) -> None:
        _, sample = _skewed(length=50, dim=2)
        solver = sx.Stochastic(optax.sgd(1e-3), epochs=1, precondition=False, hold_out=hold_out)
        control = sx.fit(SMOOTH, sample, sx.KernelTranslates(), solver=solver)
        assert len(control.params) == count

    def test_epochs_of_a_shorter_run_with_a_constant_rate_are_the_same(self) -> None:
        _, sample = _skewed(length=50, dim=2)
        long = self.control(optax.adam(1e-2), hold_out=0.0, epochs=4, averaging=False)
        short = self.control(optax.adam(1e-2), hold_out=0.0, epochs=2, averaging=False)
        assert len(long.training.iterates[1]) == 4
        np.testing.assert_allclose(
            long.after(2)(sample.draws, sample.scores),
            short(sample.draws, sample.scores),
            rtol=1e-10,
        )

    def test_refusals_say_what_to_do(self) -> None:
        _, sample = _skewed(length=50, dim=2)
        with pytest.raises(ValueError, match="record=True"):
            sx.fit(SMOOTH, sample, sx.Polynomial(2)).after(1)
        with pytest.raises(ValueError, match="from 1 to 2"):
            self.control(optax.sgd(1e-3), epochs=2).after(0)


def _excess(rate) -> float:
    """The exponent with which the empirical risk approaches that of the exact solve, from 8 to 64 epochs."""
    x = np.random.default_rng(0).normal(size=(4, 100, 1))
    sample, family, values = sx.Sample(x, -x), sx.Polynomial(2), np.exp(0.5 * x[..., 0])
    exact = sx.fit({"f": values}, sample, family, penalty=sx.NoPenalty(), solver=sx.Exact())
    solver = sx.Stochastic(
        optax.sgd(rate), epochs=64, precondition=False, averaging=False, hold_out=0.0, record=True
    )

    def risk(control: sx.ControlVariate) -> float:
        return float(np.var(values - control(x, -x)[..., 0]))

    paths = []
    for seed in range(8):
        key = jax.random.key(seed)
        control = sx.fit(
            {"f": values}, sample, family, penalty=sx.NoPenalty(), solver=solver, key=key
        )
        paths.append([risk(control.after(epoch)) - risk(exact) for epoch in range(8, 65)])
    steps = 50 * np.arange(8, 65)
    return float(np.polyfit(np.log(50 + steps), np.log(np.mean(paths, axis=0)), 1)[0])


@pytest.mark.slow
def test_the_excess_risk_falls_like_one_over_the_steps() -> None:
    """The paper's third proposition; with a constant learning rate it does not."""
    assert _excess(lambda step: 2.0 / (50 + step)) < -0.85
    assert _excess(0.02) > -0.4


def test_the_note_says_when_the_best_rate_is_the_highest() -> None:
    _, sample = _skewed(length=50, dim=2)
    solver = sx.Stochastic(precondition=False, rates=(1e-4, 1e-1), epochs=5)
    note = sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver).note
    assert "a rate of 0.1, the highest of 2" in note
    solver = sx.Stochastic(precondition=False, rates=(1e-1,), epochs=5)
    assert sx.fit(SMOOTH, sample, sx.Polynomial(2), solver=solver).note.endswith("a rate of 0.1")


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"batch_size": 1}, "batches of 2 or more"),
        ({"epochs": 0}, "at least one epoch"),
        ({"hold_out": -0.1}, "a fraction of the draws below 1"),
        ({"hold_out": 1.0}, "a fraction of the draws below 1"),
        ({"rates": ()}, "one or several positive numbers"),
        ({"rates": (0.1, 0.0)}, "one or several positive numbers"),
        ({"record": True, "train_hyperparameters": True}, "coefficients only"),
    ],
)
def test_wrong_setting_says_what_to_do(settings, says) -> None:
    with pytest.raises(ValueError, match=says):
        sx.Stochastic(**settings)


def test_network_refuses_a_norm_that_it_does_not_have() -> None:
    _, sample = _skewed(length=25, dim=2)
    with pytest.raises(TypeError, match="use MeanSquare or Ridge"):
        sx.fit(SMOOTH, sample, sx.Network(4, 1), penalty=sx.NativeNorm(1e-3))


@pytest.mark.parametrize("solver", [sx.Exact(), sx.ConjugateGradient()])
def test_linear_solvers_send_a_network_to_the_stochastic_one(solver) -> None:
    _, sample = _skewed(length=25, dim=2)
    with pytest.raises(TypeError, match="use the Stochastic solver"):
        sx.fit(SMOOTH, sample, sx.Network(4, 1), solver=solver)
