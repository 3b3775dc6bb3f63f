"""Cross-validation of given families and penalties, and coordinates as they are given."""

import numpy as np
import pytest

import steinax as sx

X = np.random.default_rng(3).normal(size=(2, 100, 3)) * [1.0, 5.0, 0.2] + 1
SCALES = np.array([1.0, 5.0, 0.2])
SAMPLE = sx.Sample(X, -(X - 1) / SCALES**2)
VALUES = {"f": np.sin(X[..., 0]) + X[..., 1] * X[..., 2], "g": X[..., 0] ** 3}


def test_what_is_left_is_measured_on_the_other_draws() -> None:
    """Against two fits by hand, each to one chain and judged on the other."""
    family, penalty = sx.Polynomial(2), sx.Ridge(0.1)
    found = sx.cross_validate(
        VALUES, SAMPLE, family, penalties=penalty, folds=2, standardise=False, solver=sx.Exact()
    )
    values, residuals = np.stack(list(VALUES.values()), axis=-1), []
    for chain in (0, 1):
        one, other = (slice(c, c + 1) for c in (1 - chain, chain))
        control = sx.fit(
            {name: v[one] for name, v in VALUES.items()},
            sx.Sample(X[one], SAMPLE.scores[one]),
            family,
            penalty=penalty,
            standardise=False,
            solver=sx.Exact(),
        )
        residuals.append(values[chain] - control(X[other], SAMPLE.scores[other])[0])
    left = np.var(np.concatenate(residuals), axis=0) / values.var(axis=(0, 1))
    np.testing.assert_allclose(found.left, left[None], rtol=1e-8)


def test_the_best_of_families_and_penalties() -> None:
    kernels = [sx.KernelTranslates(sx.kernels.SquaredExponential(s)) for s in (0.01, 2.0)]
    penalties = [sx.NativeNorm(strength) for strength in (1e-8, 1e2)]
    found = sx.cross_validate(VALUES, SAMPLE, kernels, penalties=penalties)
    assert found.left.shape == (4, 2)
    assert found.family is kernels[1] and found.penalty is penalties[0]
    mean = np.exp(np.log(found.left).mean(axis=1))
    assert found.best == mean.argmin() == 2
    first, second = str(found).splitlines()[:2]
    assert first.split() == ["family", "penalty", "left"]
    assert "SquaredExponential(2" in second and second.endswith(f"{mean.min():.2g}")


def test_as_many_folds_as_draws_where_there_are_almost_as_many_coefficients() -> None:
    """495 coefficients for 500 draws: four fifths of these cannot show that no penalty is needed."""
    x = np.random.default_rng(0).normal(size=(1, 500, 30))
    sample, values = sx.Sample(x, -x), {"sum": x.sum(axis=-1)}
    few, many = (
        sx.cross_validate(
            values, sample, sx.Polynomial(2, weight=0.5), penalties=sx.Ridge(1e-12), folds=folds
        )
        for folds in (5, 500)
    )
    assert few.left[0, 0] > 0.2 and many.left[0, 0] < 1e-8


def test_coordinates_as_they_are_given() -> None:
    """A ridge penalty on the coefficients of the score itself, against the closed form."""
    strength = 0.3
    control = sx.fit(
        VALUES,
        SAMPLE,
        sx.Polynomial(1),
        penalty=sx.Ridge(strength),
        standardise=False,
        solver=sx.Exact(),
    )
    score, values = SAMPLE.score, np.stack([v.ravel() for v in VALUES.values()], axis=-1)
    centred = score - score.mean(axis=0)
    gram = centred.T @ centred / len(score) + strength * np.eye(3)
    slopes = np.linalg.solve(gram, centred.T @ (values - values.mean(axis=0)) / len(score))
    np.testing.assert_allclose(control(SAMPLE.x, score), score @ slopes, rtol=1e-8)
    estimates = [
        sx.estimate(VALUES, SAMPLE, sx.Polynomial(1), penalty=sx.Ridge(strength), standardise=s)
        for s in (False, True)
    ]
    assert not np.allclose(estimates[0].value, estimates[1].value, rtol=1e-6)


def test_refusals_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="give one family at least"):
        sx.cross_validate(VALUES, SAMPLE, [])
    with pytest.raises(ValueError, match="standardise go with a family"):
        sx.estimate(VALUES, SAMPLE, standardise=False)
    stream = sx.Stream.from_arrays(SAMPLE.draws, SAMPLE.scores)
    with pytest.raises(ValueError, match="always standardised"):
        sx.estimate("x", stream, sx.Polynomial(1), standardise=False)
