"""Candidates whose features are summed over the members of a vector."""

from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.data import vectors_of
from steinax.estimation._directions import Vector, _Shape
from steinax.estimation._draws import RealDraws
from steinax.solvers import Regression, widened

NAMES = ["mu", "log_tau", *(f"theta[{j}]" for j in range(40))]


def hierarchy(seed: int, chains: int = 4, length: int = 75) -> sx.Sample:
    """Independent draws of mu, log tau and 40 members around mu, of unequal widths."""
    rng = np.random.default_rng(seed)
    mu, t = rng.normal(size=(chains, length)), 0.3 * rng.normal(size=(chains, length))
    width = np.exp(t)[..., None] * WIDTHS
    theta = mu[..., None] + width * rng.normal(size=(chains, length, 40))
    inside = (theta - mu[..., None]) / width
    score = np.concatenate(
        [
            (-mu + (inside / width).sum(axis=-1))[..., None],
            (-t / 0.09 + (inside**2 - 1).sum(axis=-1))[..., None],
            -inside / width,
        ],
        axis=-1,
    )
    return sx.Sample(np.concatenate([mu[..., None], t[..., None], theta], axis=-1), score, NAMES)


WIDTHS = np.linspace(0.5, 1.5, 40)
F = {
    "mu": lambda mu: mu,
    "tau": lambda log_tau: 1.0 * jnp.exp(log_tau),
    "member": lambda theta: theta[7],
    "contrast": lambda theta: theta[3] - theta[20],
    "spread": lambda theta: jnp.mean((theta - jnp.mean(theta)) ** 2),
}
SPREAD = np.exp(0.18) * np.mean(WIDTHS**2) * 39 / 40
TRUTH = np.array([0.0, np.exp(0.045), 0.0, 0.0, SPREAD])


def shape_of(sample: sx.Sample, degree: int, fold: int = 1) -> tuple[_Shape, RealDraws]:
    f = np.asarray(sample.x[:, :1])
    draws = RealDraws(sample, f / f.std(), sx.CrossFit(4).boundaries(4, sample.length))
    vectors = [Vector(draws, columns) for columns in draws.vectors]
    return _Shape(draws, vectors, draws.folds[fold], degree), draws


def fields(shape: _Shape, g: int, degree: int):
    """The fields whose Stein images the features are: functions of standardised coordinates, by vector."""
    pairs = list(combinations_with_replacement(range(g), 2))
    on_members = [lambda t, a: jnp.ones_like(t), lambda t, a: t]
    on_members += [lambda t, a, i=i: a[i] + 0 * t for i in range(g)]
    if degree == 2:
        on_members += [lambda t, a: t**2]
        on_members += [lambda t, a, i=i: a[i] * t for i in range(g)]
        on_members += [lambda t, a, i=i, j=j: a[i] * a[j] + 0 * t for i, j in pairs]
    found = []
    for vector in shape.vectors:
        weights, at = shape.weights(vector.members), vector.members
        for h in on_members:
            for w in weights.T:
                found.append(
                    lambda z, h=h, w=w, at=at: jnp.zeros_like(z).at[at].set(w * h(z[at], z[:g]))
                )
    for i in range(g):
        scalars = [lambda z: 1.0, *(lambda z, j=j: z[j] for j in range(g))]
        sums = []
        for vector in shape.vectors:
            weights, at = shape.weights(vector.members), vector.members
            sums.append([lambda z, w=w, at=at: w @ z[at] for w in weights.T])
            if degree == 2:
                sums.append([lambda z, w=w, at=at: w @ z[at] ** 2 for w in weights.T])
        scalars += [one for group in sums for one in group]
        if degree == 2:
            scalars += [lambda z, j=j, k=k: z[j] * z[k] for j, k in pairs]
            for group in sums[::2]:
                for j in range(g):
                    scalars += [lambda z, j=j, one=one: z[j] * one(z) for one in group]
        found += [lambda z, h=h, i=i: jnp.zeros_like(z).at[i].set(h(z)) for h in scalars]
    return found


@pytest.mark.parametrize("degree", [1, 2])
def test_features_are_stein_images(degree: int) -> None:
    """Each is div phi + phi . s, by automatic differentiation of the field, so its mean is zero."""
    shape, draws = shape_of(hierarchy(0, length=20), degree)
    columns = shape.columns()
    x, score = (np.asarray(array) for array in draws.scaled)
    z, slope = (x - shape.mean) / shape.sd, score * shape.sd
    wanted = fields(shape, 2, degree)
    assert columns.shape[1] == shape.count == len(wanted)
    with jax.enable_x64(True):
        for row in (0, 50):
            point, along = jnp.asarray(z[row]), jnp.asarray(slope[row])
            images = [
                jnp.trace(jax.jacobian(field)(point)) + field(point) @ along for field in wanted
            ]
            np.testing.assert_allclose(columns[row], images, rtol=1e-8, atol=1e-8)


def test_no_feature_depends_on_the_fold_it_is_averaged_over() -> None:
    sample = hierarchy(1, length=20)
    moved = sample.draws.copy()
    moved[1, :, 5] += 3.0  # the second fold is the second chain
    other = sx.Sample(moved, sample.scores, NAMES)
    shapes = [shape_of(each, 2)[0] for each in (sample, other)]
    for vector in shapes[0].vectors:
        weights = [shape.weights(vector.members) for shape in shapes]
        np.testing.assert_allclose(*weights, rtol=1e-9, atol=1e-9)
    weights = [shape_of(each, 2, fold=0)[0].weights(np.arange(2, 42)) for each in (sample, other)]
    assert np.abs(weights[0] - weights[1]).max() > 0.01


@pytest.mark.slow
def test_a_hierarchy_gains_from_the_names_of_its_vector() -> None:
    """12 replicates of 300 draws in 42 dimensions; a gain is known to a factor of two or so."""
    plain, named, unnamed, z = [], [], [], []
    for seed in range(12):
        sample = hierarchy(seed)
        found = sx.estimate(F, sample, audit="off")
        values = {name: sx.data.integrands({name: f}, sample).values for name, f in F.items()}
        bare = sx.Sample(sample.draws, sample.scores, [f"a{i}" for i in range(42)])
        unnamed.append(sx.estimate(values, bare, audit="off").value - TRUTH)
        plain.append(found.plain_value - TRUTH)
        named.append(found.value - TRUTH)
        z.append(named[-1] / found.mcse)
    errors = [np.mean(np.square(each), axis=0) for each in (plain, named, unnamed)]
    gain, without = errors[0] / errors[1], errors[0] / errors[2]
    assert (gain > [1000, 10, 15, 5, 3]).all()
    assert np.exp(np.mean(np.log(gain / without))) > 2.5
    assert 0.4 < np.sqrt(np.mean(np.square(z))) < 1.4


def test_an_integrand_is_estimated_as_it_is_alone() -> None:
    sample = hierarchy(3)
    together = sx.estimate(F, sample, audit="off")
    for name in ("tau", "member"):
        alone = sx.estimate({name: F[name]}, sample, audit="off")
        np.testing.assert_allclose(together[name].value, alone.value, rtol=1e-9)
        assert any("Tied" in one for one in alone.chosen)


def test_vectors_are_found_by_name() -> None:
    names = ["mu", "b[0]", "b[1]", "theta[0, 0]", "theta[0, 1]", "theta[1, 0]", "theta[1, 1]"]
    assert [each.tolist() for each in vectors_of(names, 3)] == [[3, 4, 5, 6]]
    assert len(vectors_of(names, 2)) == 2
    sample = hierarchy(2)
    bare = sx.Sample(sample.draws, sample.scores, [f"a{i}" for i in range(42)])
    found = sx.estimate(bare.draws[..., 0], bare, audit="off")
    assert found.candidates is not None
    assert not any("Tied" in name for name in found.candidates.names)


def test_columns_are_added_to_a_regression() -> None:
    rng = np.random.default_rng(4)
    x, f, folds = rng.normal(size=(60, 9)), rng.normal(size=(60, 2)), ((0, 20), (20, 60))
    wide, whole = widened(Regression(x[:, :5]), x[:, 5:]), Regression(x)
    ours, theirs = (each.leave_out(f, folds) for each in (wide, whole))
    for field in ("residual", "intercepts", "variance"):
        np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-9)
    assert (
        wide.sound and not widened(Regression(x[:, :5]), x[:, :5] @ rng.normal(size=(5, 1))).sound
    )
