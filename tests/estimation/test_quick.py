"""The quick choice: polynomials in NumPy."""

import subprocess
import sys

import jax
import numpy as np
import pytest

import steinax as sx
from steinax._precision import precision
from steinax.estimation._least_squares import cross_fit
from steinax.estimation._quick import _whole, single_fit

RNG = np.random.default_rng(0)
FOLDS = ((0, 60), (60, 120), (120, 200))
X = RNG.normal(size=(4, 100, 2))
SAMPLE = sx.Sample(X, -X)


def _refitted(features: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rest, intercepts = np.empty_like(f), []
    columns = np.concatenate([np.ones((len(f), 1)), features], axis=1)
    for start, stop in FOLDS:
        kept = np.r_[0:start, stop : len(f)]
        w = np.linalg.lstsq(columns[kept], f[kept])[0]
        intercepts.append(w[0])
        rest[start:stop] = f[start:stop] - columns[start:stop, 1:] @ w[1:]
    return rest, np.array(intercepts)


@pytest.mark.parametrize("p", [3, 100])  # fewer and more than a fold has draws
def test_leaving_out_a_fold_is_fitting_without_it(p: int) -> None:
    features, f = RNG.normal(size=(200, p)), 5 + RNG.normal(size=(200, 2))
    found = cross_fit(features, f, FOLDS)
    rest, intercepts = _refitted(features, f)
    np.testing.assert_allclose(found.rest, rest, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercepts, intercepts, rtol=1e-9)


def test_dependent_columns_are_left_alone() -> None:
    features = np.repeat(RNG.normal(size=(200, 1)), 2, axis=1)
    assert cross_fit(features, RNG.normal(size=(200, 1)), FOLDS) is None


@pytest.mark.parametrize("p", [3, 100])  # fewer and more than a fold has draws
def test_columns_that_depend_on_each_other_without_a_fold_are_left_alone(p: int) -> None:
    features = np.random.default_rng(1).normal(size=(200, p))
    features[60:120, 0] = 0.0
    features[120:, 0] = 0.0
    assert cross_fit(features, RNG.normal(size=(200, 1)), FOLDS) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dim", "length", "seed"), [(1, 10, 13), (2, 10, 7), (40, 60, 2)])
def test_coordinates_that_move_in_one_fold_only(dim: int, length: int, seed: int) -> None:
    """Collinear in every other fold: such candidates are dropped, and an honest answer is left."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x = rng.normal(size=(4, length, dim))
        x[..., :3] = 0.0
        x[1, 3:6, :3] = rng.normal(size=x[1, 3:6, :3].shape)
        est = sx.estimate({"f": x[..., 0]}, sx.Sample(x, -x), quick=True, audit="off")
        assert np.isfinite(est.mcse).all()


@pytest.mark.filterwarnings("error")
def test_a_feature_that_is_zero_on_every_draw() -> None:
    x = np.tile([1.0, -1.0], 120).reshape(4, 60, 1)  # 1 + x s is zero
    est = sx.estimate("x", sx.Sample(x, -x), quick=True, audit="off")
    assert np.isfinite(est.mcse).all()


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_features_span_those_of_the_family(degree: int) -> None:
    x, score = RNG.normal(size=(2, 200, 3))
    x = np.linalg.qr(x)[0] * np.sqrt(200)  # whitened already
    with precision(np.float64):
        theirs = jax.vmap(lambda x, s: sx.Polynomial(degree).features(None, x, s))(x, score)
    ours = np.column_stack([np.ones(200), _whole(x, score, degree)])
    theirs = np.column_stack([np.ones(200), np.asarray(theirs)])
    coefficients = np.linalg.lstsq(ours, theirs)[0]
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours @ coefficients, theirs, atol=1e-8 * np.abs(theirs).max())


def test_single_dimensions_do_not_depend_on_units_or_on_the_held_out_draws() -> None:
    x = RNG.normal(size=(200, 4)) @ RNG.normal(size=(4, 4))
    score = -np.linalg.solve(np.cov(x.T), x.T).T
    f = x[:, :1] ** 2
    one = single_fit(x, score, f, 3, FOLDS)
    scale, shift = np.array([1.0, 10.0, 0.1, 2.0]), np.array([0.0, 1.0, -2.0, 0.5])
    moved = x * scale + shift
    moments = single_fit(moved - shift, score / scale, f, 3, FOLDS)
    np.testing.assert_allclose(one.rest, moments.rest, rtol=1e-7, atol=1e-9)
    changed = x.copy()
    changed[:60] = RNG.normal(size=(60, 4))  # the first fold only
    other = single_fit(changed, score, f, 3, FOLDS)
    np.testing.assert_allclose(one.intercepts[0], other.intercepts[0], rtol=1e-9)


def test_it_is_exact_where_polynomials_are() -> None:
    x = RNG.normal(size=(4, 500, 3))
    est = sx.estimate({"mean": "x", "square": lambda x: x[0] ** 2}, sx.Sample(x, -x), quick=True)
    np.testing.assert_allclose(est.value, [0, 0, 0, 1], atol=1e-10)


def test_plain_stays_where_nothing_helps() -> None:
    noise = RNG.normal(size=(4, 100))
    est = sx.estimate({"noise": noise}, SAMPLE, quick=True)
    assert est.worth[0] <= 1.0


def test_it_goes_with_no_family() -> None:
    with pytest.raises(ValueError, match="quick is for the choice of a family, and one is given"):
        sx.estimate("x", SAMPLE, sx.Polynomial(1), quick=True)


def test_nothing_is_compiled() -> None:
    code = (
        "import jax, numpy as np, steinax as sx\n"
        "jax.config.update('jax_log_compiles', True)\n"
        "x = np.random.default_rng(0).normal(size=(4, 100, 2))\n"
        "sx.estimate({'x': x}, sx.Sample(x, -x), quick=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Finished XLA compilation" not in done.stderr
