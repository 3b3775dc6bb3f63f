"""The lasso: known supports, scikit-learn's own path, refusals, and what it gains."""

import numpy as np
import pytest

import steinax as sx
from steinax.solvers._sparse import part_of

pytest.importorskip("sklearn")


def _sample(n: int = 200, dim: int = 5, seed: int = 0) -> sx.Sample:
    x = np.random.default_rng(seed).normal(size=(2, n // 2, dim))
    return sx.Sample(x, -x)


def test_path_keeps_what_scikit_learn_s_lasso_keeps() -> None:
    from sklearn.linear_model import Lasso, lasso_path

    rng = np.random.default_rng(1)
    columns = rng.normal(size=(100, 30))
    f = columns[:, 3] - 2 * columns[:, 7] + 0.1 * rng.normal(size=100)
    f = f - f.mean()
    part = part_of(columns, np.zeros((30, 30)))
    alphas = np.array([0.5, 0.1, 0.02])
    kept = list(part.kept(f, lasso_path, alphas))
    for alpha, found in zip(alphas, kept, strict=False):
        peer = Lasso(alpha=alpha, fit_intercept=False, tol=1e-10).fit(part.columns, f)
        np.testing.assert_array_equal(found, np.flatnonzero(peer.coef_))


def test_noise_leaves_few_coefficients_and_the_signal_stays() -> None:
    """Twelve dimensions, degree 2: 90 coefficients for 60 draws, of which x_0 needs one."""
    sample = _sample(60, 12)
    f = {"x": sample.draws[..., 0]}
    g = sx.fit(f, sample, sx.Polynomial(2), solver=sx.Sparse())
    assert np.count_nonzero(g.params) <= 30
    assert abs(g.intercept[0]) < 0.1 * np.abs(sample.draws[..., 0].mean())


def test_exact_where_the_family_spans_f_and_draws_are_many() -> None:
    sample = _sample(400, 3)
    est = sx.estimate(lambda x: x[0] ** 3, sample, sx.Polynomial(3), solver=sx.Sparse())
    assert abs(est.value[0]) < 1e-9


def test_no_more_than_half_as_many_as_draws_are_kept() -> None:
    sample = _sample(40, 6)
    noise = np.random.default_rng(3).normal(size=(2, 20, 3))
    g = sx.fit({"noise": noise}, sample, sx.Polynomial(3), solver=sx.Sparse())
    assert np.count_nonzero(g.params, axis=0).max() <= 20


def test_a_constant_keeps_nothing() -> None:
    sample = _sample(100)
    g = sx.fit({"one": np.ones((2, 50))}, sample, sx.Polynomial(2), solver=sx.Sparse())
    assert not g.params.any()
    assert g.intercept[0] == 1.0


def test_a_penalty_that_is_given_holds_the_coefficients_that_are_kept() -> None:
    sample = _sample(200)
    free, held = (
        sx.fit("x[0]", sample, sx.Polynomial(2), solver=sx.Sparse(), penalty=penalty)
        for penalty in (None, sx.Ridge(1.0))
    )
    assert np.abs(held.params).sum() < 0.9 * np.abs(free.params).sum()


def test_the_note_says_how_many_are_kept() -> None:
    est = sx.estimate(
        "x", _sample(200), sx.Polynomial(2), solver=sx.Sparse(0.9), split=sx.CrossFit(2)
    )
    assert "of 20 coefficients, 100 draws" in est.note


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sx.Sparse(l1_ratio=0.0), "give 1 for the lasso"),
        (lambda: sx.Sparse(folds=1), "at least two"),
        (lambda: sx.fit("x", _sample(16), sx.Polynomial(1), solver=sx.Sparse()), "too few"),
    ],
)
def test_refusals_say_what_to_do(make, words) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_networks_are_refused() -> None:
    with pytest.raises(TypeError, match="Stochastic"):
        sx.fit("x", _sample(), sx.Network(4, 1), solver=sx.Sparse())


def test_the_missing_package_is_named(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.linear_model", None)
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"steinax\[sparse\]"):
        sx.fit("x", _sample(), sx.Polynomial(1), solver=sx.Sparse())


@pytest.mark.slow
def test_a_sparse_target_gains_over_a_ridge(data_dir) -> None:
    """The benchmark, small: at degree 3 the lasso leaves less than half of what the default ridge leaves."""
    from benchmarks.beyond import sparse

    rows = sparse.measure(only="sparse target", rounds=2)
    found = {(row["draws"], row["degree"], row["solver"]): row for row in rows}
    ridge, lasso = (found[200, 3, name]["by error bars, means"] for name in ("Exact", "Sparse"))
    assert lasso > 3 * ridge
