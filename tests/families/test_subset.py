"""Families in some of the coordinates alone."""

import numpy as np
import pytest

import steinax as sx
from steinax.families import Subset


def _correlated(n: int = 400) -> tuple[sx.Sample, np.ndarray]:
    """Normal draws of three correlated coordinates of unequal scale."""
    factor = np.array([[1.0, 0, 0], [3.0, 2.0, 0], [0.1, 0.2, 0.5]])
    x = np.random.default_rng(0).normal(size=(2, n // 2, 3)) @ factor.T
    precision = np.linalg.inv(factor @ factor.T)
    return sx.Sample(x, -x @ precision), precision


def test_g_is_a_multiple_of_the_score_of_the_coordinate() -> None:
    sample, _ = _correlated()
    g = sx.fit("x", sample, Subset(sx.Polynomial(1), (1,)))
    values = g(sample.x, sample.score)
    for column in values.T:
        np.testing.assert_allclose(column / column[0], sample.score[:, 1] / sample.score[0, 1])


def test_values_depend_on_the_subset_s_draws_and_scores_only() -> None:
    sample, _ = _correlated()
    g = sx.fit(lambda x: x[0] ** 2, sample, Subset(sx.Polynomial(2), (0, 2)))
    x, score = sample.x.copy(), sample.score.copy()
    x[:, 1], score[:, 1] = 7.0, -3.0
    np.testing.assert_array_equal(g(x, score), g(sample.x, sample.score))


def test_exact_for_a_coordinate_that_is_independent_of_others() -> None:
    x = np.random.default_rng(1).normal(size=(2, 100, 4)) * [2.0, 1.0, 5.0, 0.1] + 3.0
    sample = sx.Sample(x, -(x - 3.0) / np.array([2.0, 1.0, 5.0, 0.1]) ** 2)
    est = sx.estimate("x[0]", sample, Subset(sx.Polynomial(1), (0,)), audit="off")
    assert abs(est.value[0] - 3.0) < 1e-12


def test_all_coordinates_are_the_family_itself() -> None:
    sample, _ = _correlated()
    f = {"sin": np.sin(sample.draws[..., 0])}
    whole = sx.estimate(f, sample, sx.Polynomial(2))
    subset = sx.estimate(f, sample, Subset(sx.Polynomial(2), (0, 1, 2)))
    np.testing.assert_allclose(subset.value, whole.value, rtol=0, atol=1e-10)


def test_a_heuristic_looks_at_the_subset() -> None:
    sample, _ = _correlated()
    x = sample.x / sample.x.std(axis=0)
    family = sx.kernels.resolve(Subset(sx.KernelTranslates(), (0,)), x)
    alone = sx.kernels.resolve(sx.KernelTranslates(), x[:, :1])
    assert family.family.kernel.length_scale == alone.kernel.length_scale


def test_subsets_add_up() -> None:
    sample, _ = _correlated()
    family = Subset(sx.Polynomial(2), (0, 1)) + Subset(sx.KernelTranslates(), (2,))
    est = sx.estimate("x", sample, family, audit="off")
    assert np.all(est.mcse[:2] < est.plain_mcse[:2])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Subset(sx.Polynomial(1), ()), ValueError, "one or more"),
        (lambda: Subset(sx.Polynomial(1), (0, 0)), ValueError, "each once"),
        (lambda: Subset(sx.Polynomial(1), (-1,)), ValueError, "from 0"),
        (lambda: Subset(sx.Network(4, 1), (0,)), TypeError, "(?i)linear"),
        (lambda: Subset(sx.Polynomial(1) + sx.Polynomial(2), (0,)), TypeError, "add subsets"),
        (
            lambda: sx.fit("x", _correlated()[0], Subset(sx.Polynomial(1), (3,))),
            ValueError,
            "3 coordinates",
        ),
    ],
)
def test_refusals_say_what_to_do(make, error, words) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_stream_is_refused() -> None:
    sample, _ = _correlated()
    with pytest.raises(ValueError, match="whitened"):
        sx.estimate(
            "x", sx.Stream(lambda: sample.blocks(50), chains=2), Subset(sx.Polynomial(1), (0,))
        )
