"""One regression: what leaving out a fold gives is what a fit without it gives, in every form of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax._numerics import precision, whitening
from steinax.estimation._blocks import no_integrands
from steinax.solvers import Exact, Regression, prepare, typical_share

N, Q = 83, 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, Q))
F = 3.0 + np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
KERNEL = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=-1) / 4)
WIDE = np.cos(X @ RNG.normal(size=(Q, 30)))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
FOLDS = ((0, 20), (20, 39), (39, 60), (60, 70))  # of different sizes; the last 13 rows are in none
FORMS = {
    "columns": {"columns": X},
    "features": {"columns": X, "features": WIDE, "penalty": 0.3},
    "features alone": {"features": WIDE, "penalty": 2.0},
    "kernel": {"columns": X, "kernel": KERNEL, "penalty": 0.01},
    "kernel alone": {"kernel": KERNEL, "penalty": 0.3},
}


def _fit(form: dict, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts and g on all rows of the fit to some, by the normal equations of coefficients.

    A kernel's features are the columns of the root of its matrix.
    """
    free = np.column_stack([np.ones(N), form.get("columns", np.zeros((N, 0)))])
    held = form.get("features", np.zeros((N, 0)))
    if "kernel" in form:
        values, vectors = np.linalg.eigh(form["kernel"])
        held = vectors * np.sqrt(np.maximum(values, 0))
    a = np.column_stack([free, held])
    penalty = np.diag(
        np.r_[np.zeros(free.shape[1]), np.full(held.shape[1], form.get("penalty", 0))]
    )
    scaled = weights[rows, None] * a[rows]
    w = np.linalg.solve(a[rows].T @ scaled + penalty, scaled.T @ F[rows])
    return w[0], a[:, 1:] @ w[1:]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("form", FORMS)
class TestLeavingOut:
    def test_is_fitting_to_the_others(self, form: str, weights) -> None:
        held = Regression(**FORMS[form], weights=weights).leave_out(F, FOLDS)
        v = np.ones(N) if weights is None else weights**2
        for i, (start, stop) in enumerate(FOLDS):
            level, g = _fit(FORMS[form], np.r_[0:start, stop:N], v)
            np.testing.assert_allclose(held.intercepts[i], level, atol=1e-9)
            np.testing.assert_allclose(held.residual[start:stop], (F - g)[start:stop], atol=1e-9)

    def test_training_points_have_no_part_in_the_means(self, form: str, weights) -> None:
        draw, row = np.arange(N) % 3 > 0, np.arange(N)
        held = Regression(**FORMS[form], weights=weights).leave_out(F, FOLDS, draw=draw)
        v = np.ones(N) if weights is None else weights**2
        for i, (start, stop) in enumerate(FOLDS):
            _, g = _fit(FORMS[form], np.r_[0:start, stop:N], v)
            others = draw & ((row < start) | (row >= stop))
            mean = np.average((F - g)[others], axis=0, weights=v[others])
            np.testing.assert_allclose(held.intercepts[i], mean, atol=1e-9)
            np.testing.assert_allclose(held.residual[start:stop], (F - g)[start:stop], atol=1e-9)

    @pytest.mark.parametrize("draw", [None, np.arange(N) % 4 > 0], ids=["draws", "with training"])
    def test_estimates_without_a_fold_are_those_of_refits(self, form: str, weights, draw) -> None:
        """To first order: what is left out of the formula is a few per cent of the changes here."""
        folds = tuple((i, i + 3) for i in range(0, 69, 3))
        held = Regression(**FORMS[form], weights=weights).leave_out(F, folds, draw=draw)
        w = np.ones(N) if weights is None else weights
        used = np.where(np.ones(N) if draw is None else draw, w, 0.0)[:, None]
        exact = np.zeros((len(folds), 2))
        for i, out in enumerate(folds):
            total, count = np.zeros(2), 0.0
            for start, stop in folds[:i] + folds[i + 1 :]:
                kept = np.delete(np.arange(N), [*range(*out), *range(start, stop)])
                _, g = _fit(FORMS[form], kept, w**2)
                total += (used * (F - g))[start:stop].sum(axis=0)
                count += used[start:stop].sum()
            exact[i] = total / count
        changes, error = exact - exact.mean(axis=0), held.without - exact
        assert np.linalg.norm(error) < 0.1 * np.linalg.norm(changes)

    def test_factorises_folds_once_for_all_integrands(
        self, form: str, weights, monkeypatch
    ) -> None:
        asked = []
        made = Regression(**FORMS[form], weights=weights)
        blocks = made._made_blocks
        monkeypatch.setattr(
            made, "_made_blocks", lambda folds: asked.append(folds) or blocks(folds)
        )
        for f, folds in ((F, FOLDS), (2 * F, FOLDS), (F, FOLDS[:2])):
            fresh = Regression(**FORMS[form], weights=weights).leave_out(f, folds)
            held = made.leave_out(f, folds)
            np.testing.assert_array_equal(held.residual, fresh.residual)
            np.testing.assert_array_equal(held.variance, fresh.variance)
        assert asked == [FOLDS, FOLDS[:2]]

    def test_gives_the_weights_of_its_mean(self, form: str, weights) -> None:
        made = Regression(**FORMS[form], weights=weights)
        share = np.ones(70) if weights is None else weights[:70]
        mean = np.average(made.leave_out(F, FOLDS).residual, axis=0, weights=share)
        np.testing.assert_allclose(made.averaging(FOLDS) @ F, mean, atol=1e-12)

    def test_gives_the_coefficients_too(self, form: str, weights) -> None:
        made = Regression(**FORMS[form], weights=weights)
        v = np.ones(N) if weights is None else weights**2
        for (start, stop), one in zip(FOLDS, made.without_each(F, FOLDS), strict=True):
            level, g = _fit(FORMS[form], np.r_[0:start, stop:N], v)
            np.testing.assert_allclose(one.intercept, level, atol=1e-9)
            values = X @ one.columns if "columns" in FORMS[form] else 0.0
            if one.kernel is not None:
                values = values + KERNEL @ one.kernel
            elif "features" in FORMS[form]:
                values = values + WIDE @ one.features
            np.testing.assert_allclose(values, g, atol=1e-9)

    def test_is_the_same_in_jax(self, form: str, weights) -> None:
        with jax.enable_x64(True):
            given = {
                name: jnp.asarray(value) if isinstance(value, np.ndarray) else value
                for name, value in FORMS[form].items()
            }
            made = Regression(**given, weights=None if weights is None else jnp.asarray(weights))
            found = made.leave_out(jnp.asarray(F), FOLDS)
            assert isinstance(found.residual, jax.Array)
        expected = Regression(**FORMS[form], weights=weights).leave_out(F, FOLDS)
        for name in ("residual", "intercepts", "variance"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize("form", ["columns", "kernel"])
def test_the_expected_variance_is_that_of_noise(form: str) -> None:
    """Of f that is noise, the mean square of each residual over 4,000 integrands: within 5 errors of 2.2%."""
    given = FORMS[form] | {"penalty": 1e4}  # so that what is left is the noise, not the prior
    noise = np.random.default_rng(1).normal(size=(N, 4000))
    held = Regression(**given).leave_out(noise, FOLDS)
    level = np.repeat(held.intercepts, [20, 19, 21, 10], axis=0)
    seen = ((held.residual - level) ** 2).mean(axis=1)
    ratio = seen / held.variance
    np.testing.assert_allclose(ratio / ratio.mean(), 1.0, atol=0.12)


def test_first_columns_share_the_factorisation() -> None:
    whole = Regression(X, KERNEL, penalty=0.01)
    for count in (1, 3):
        few = Regression(X[:, : count - 1], KERNEL, penalty=0.01).leave_out(F, FOLDS)
        np.testing.assert_allclose(
            whole.first(count).leave_out(F, FOLDS).residual, few.residual, atol=1e-10
        )


def test_many_regressions_at_once() -> None:
    columns = np.stack([X, X**2, np.cos(X)])
    f = np.stack([F, F + 1, 2 * F])
    together = Regression(columns).leave_out(f, FOLDS)
    for i in range(3):
        alone = Regression(columns[i]).leave_out(f[i], FOLDS)
        for name in ("residual", "intercepts", "variance"):
            np.testing.assert_allclose(getattr(together, name)[i], getattr(alone, name), atol=1e-12)


class TestColumnsThatDepend:
    def test_are_not_used(self) -> None:
        twice = np.column_stack([X, X[:, 0] + 1e-14 * X[:, 1], np.zeros(N)])
        made = Regression(twice)
        assert not made.sound
        expected = Regression(X).leave_out(F, FOLDS).residual
        np.testing.assert_allclose(made.leave_out(F, FOLDS).residual, expected, atol=1e-9)

    def test_more_columns_than_rows(self) -> None:
        made = Regression(RNG.normal(size=(N, N + 3)))
        assert np.isfinite(made.leave_out(F, FOLDS).residual).all()
        assert not made.sound

    def test_nearly_are_used(self) -> None:
        """One part in a million is enough to tell columns apart, and normal equations would lose it."""
        close = np.column_stack([X[:, 0], X[:, 0] + 1e-6 * X[:, 1]])
        made = Regression(close)
        assert made.sound
        residual = made.leave_out(X[:, 1:2], FOLDS).residual
        np.testing.assert_allclose(residual, 0.0, atol=1e-8)

    def test_on_the_other_folds_only_have_coefficient_zero(self) -> None:
        """A column that is zero but on one fold: the fits without that fold know nothing of it."""
        rare = np.where(np.arange(N) < 20, X[:, 0], 0.0)
        held = Regression(np.column_stack([X[:, 1], rare])).leave_out(F, FOLDS)
        expected = Regression(X[:, 1:2]).leave_out(F, FOLDS)
        np.testing.assert_allclose(held.residual[:20], expected.residual[:20], atol=1e-4)
        assert np.isfinite(held.residual).all()

    @pytest.mark.parametrize("features", [None, np.tanh(X)], ids=["free", "penalised"])
    def test_on_the_other_folds_only_have_their_weights(self, features) -> None:
        rare = np.where(np.arange(N) < 20, X[:, 0], 0.0)[:, None]
        made = Regression(rare, features=features, penalty=0.3)
        mean = made.leave_out(F, FOLDS).residual.mean(axis=0)
        np.testing.assert_allclose(made.averaging(FOLDS) @ F, mean, atol=1e-12)


@pytest.mark.parametrize("kind", [np, jnp], ids=["numpy", "jax"])
@pytest.mark.parametrize("kernel", [None, KERNEL], ids=["columns", "kernel"])
@pytest.mark.parametrize(
    "extra", [np.zeros(N), 2 * X[:, 0] - 3 * X[:, 1] + 1], ids=["zero", "dependent"]
)
def test_a_column_that_says_nothing_changes_nothing(extra, kernel, kind) -> None:
    """In whatever place it stands: it takes no direction away from the columns after it."""
    more = np.insert(X, 2, extra, axis=1)
    with precision(np.float64):
        made, known = (
            Regression(*(None if one is None else kind.asarray(one) for one in (columns, kernel)))
            for columns in (more, X)
        )
        assert known.sound
        assert not made.sound
        f = kind.asarray(F)
        found, expected = made.leave_out(f, FOLDS), known.leave_out(f, FOLDS)
        coefficients, others = (np.asarray(one.solve(f).columns) for one in (made, known))
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-10)
    np.testing.assert_allclose(found.intercepts, expected.intercepts, atol=1e-10)
    np.testing.assert_allclose(coefficients, np.insert(others, 2, 0.0, axis=0), atol=1e-10)


def test_regressions_of_a_batch_have_their_own_columns_that_say_nothing() -> None:
    more = np.stack([np.insert(X, place, 0.0, axis=1) for place in (0, 2, 4)])
    found = Regression(more).leave_out(np.stack([F] * 3), FOLDS).residual
    np.testing.assert_allclose(found, np.stack([Regression(X).leave_out(F, FOLDS).residual] * 3))


SAMPLE = sx.Sample(
    Y := np.log(np.random.default_rng(0).gamma(3.0, size=(4, 62, 2))), 3.0 - np.exp(Y)
)
G = 7.0 + 100 * np.sin(SAMPLE.x @ np.random.default_rng(1).normal(size=(2, 5)))
UNEQUAL = ((0, 62), (62, 123), (123, 200), (200, 248))


@pytest.mark.parametrize(
    ("family", "penalty", "shared"),
    [
        (sx.Polynomial(2), None, True),
        (sx.Polynomial(4), None, True),
        (sx.Polynomial(3), sx.NativeNorm(1e-2), True),
        (sx.Polynomial(2) + sx.KernelTranslates(), None, True),
        (sx.Polynomial(2), sx.MeanSquare(1e-2), False),
        (sx.Polynomial(1) + sx.Polynomial(2), [sx.Ridge(1e-2), sx.MeanSquare(1e-2)], False),
        (sx.KernelTranslates(centres=sx.Landmarks(20)), sx.NativeNorm(1e-3), False),
    ],
    ids=["degree 2", "degree 4", "penalised", "dual", "mean square", "two penalties", "landmarks"],
)
def test_a_crossfit_equals_refits(family, penalty, shared: bool) -> None:
    """With the penalty of as many draws as each fit sees, on average."""
    with precision(np.float64):
        problem, _ = prepare(no_integrands(SAMPLE), SAMPLE, family, penalty, None)
        made = Exact().crossfitted(problem, UNEQUAL)
        held, weights = made.leave_out(G), made.averaging()
        size = np.abs(G).max()
        for i, (start, stop) in enumerate(UNEQUAL):
            train = problem.take(np.r_[0:start, stop:248])
            fit = Exact().solve(_with(train, G[np.r_[0:start, stop:248]], shared, stop - start))
            inside = problem.take(np.arange(start, stop))
            g = fit.evaluate(inside.x, inside.score)
            np.testing.assert_allclose(
                held.residual[start:stop], G[start:stop] - g, atol=1e-9 * size
            )
            np.testing.assert_allclose(held.intercepts[i], fit.intercept, atol=1e-9 * size)
    assert (len(made.regressions) == 1) == shared
    np.testing.assert_allclose(weights @ G, held.residual.mean(axis=0), atol=1e-9 * size)


def _with(problem, f, shared: bool, left_out: int):
    """The problem of other integrands; a shared factorisation has one penalty for folds of all sizes."""
    from dataclasses import replace

    factor = (248 - 62) / (248 - left_out) if shared else 1.0
    penalties = tuple(
        one if isinstance(one, sx.NoPenalty) else type(one)(float(one.strength) * factor)
        for one in problem.penalties
    )
    return replace(problem, f=f, penalties=penalties)


class TestTypicalShare:
    X = np.random.default_rng(3).normal(size=(600, 3))
    DRAW = np.arange(600) < 100

    def test_points_distributed_as_the_draws_count_alike(self) -> None:
        share = typical_share(self.X, self.DRAW)
        assert np.isclose(share.sum(), 1.0)
        near = np.linalg.norm(self.X, axis=1) < np.quantile(np.linalg.norm(self.X, axis=1), 0.9)
        assert np.all((share[near] > 0.4 / 600) & (share[near] < 2.5 / 600))

    def test_points_that_reach_farther_out_count_as_the_draws_do(self) -> None:
        x = np.where(self.DRAW[:, None], self.X, 2 * self.X)
        radius, share = np.linalg.norm(x, axis=1), typical_share(x, self.DRAW)
        middle = np.median(radius[self.DRAW])
        assert 0.4 < share[radius < middle].sum() < 0.6
        far = radius > radius[self.DRAW].max()
        assert far.sum() > 50 and np.isclose(share[far].sum(), 1 / 101)
        assert not share[radius > 1.5 * radius[self.DRAW].max()].any()

    def test_there_is_none_without_training_points(self) -> None:
        assert typical_share(self.X, None) is None
        assert typical_share(self.X, np.ones(600, bool)) is None


@pytest.mark.parametrize("namespace", [np, jnp], ids=["NumPy", "jax"])
@pytest.mark.parametrize("least", [1e-3, 0.0, -3e-15], ids=["regular", "singular", "rounded"])
def test_rounding_errors_of_a_gram_matrix_do_not_spoil_its_factor(namespace, least: float) -> None:
    """A kernel matrix of 1,000 draws may have an eigenvalue of minus 3e-15 times its trace."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 100)))[0]
    eigenvalues = np.geomspace(1e-3, 1.0, 99)
    gram = (basis * np.r_[least, eigenvalues / eigenvalues.sum()]) @ basis.T
    with precision(np.float64):
        turn = np.asarray(whitening(namespace.asarray((gram + gram.T) / 2)))
    np.testing.assert_allclose(np.linalg.eigvalsh(turn.T @ gram @ turn)[1:], 1.0, rtol=1e-6)
