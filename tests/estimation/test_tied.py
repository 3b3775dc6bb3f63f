"""Candidates whose features are summed over the members of a vector."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steinax as sx
from steinax.data import vectors_of
from steinax.estimation._directions import Shape
from steinax.estimation._draws import RealDraws
from steinax.solvers import Regression, Widened

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


def gaussian(seed: int, chains: int, length: int) -> sx.Sample:
    """Draws of a Gaussian with the names of the hierarchy: there is no funnel to straighten."""
    root = np.linalg.cholesky(0.8 * np.eye(42) + 0.2)
    z = np.random.default_rng(seed).normal(size=(chains, length, 42))
    return sx.Sample(z @ root.T, -z @ np.linalg.inv(root), NAMES)


def shape_of(sample: sx.Sample, fold: int = 1) -> Shape:
    f = np.asarray(sample.x[:, 9:10])
    draws = RealDraws(sample, f / f.std(), sx.CrossFit(4).boundaries(4, sample.length))
    assert draws.vectors
    return Shape(draws, draws.folds[fold])


def shaped(shape: Shape) -> dict[str, np.ndarray]:
    """All features of a shape."""
    own = np.array([0, 1, 5])
    return {
        "tied": shape.tied(2),
        "linear": shape.tied(1, linear=True),
        "powers": shape.powers[:, 0],
        "mixed": np.concatenate(shape.mixed(0, own), axis=1),
        "members": np.concatenate([shape.tied(1), *shape.members(0, own)], axis=1),
    }


@pytest.mark.parametrize("degree", [1, 2])
def test_features_are_stein_images(degree: int) -> None:
    """Each is div phi + phi . s of a field, by automatic differentiation of the basis."""
    sample = hierarchy(0, length=20)
    family = sx.Tied(degree).placed(NAMES, np.zeros(42), np.ones(42))
    with jax.enable_x64(True):
        state = family.setup(sample.x, sample.score)
        closed = family.feature_matrix(state, sample.x, sample.score)
        for row in (0, 50):
            x, score = jnp.asarray(sample.x[row]), jnp.asarray(sample.score[row])
            images = sx.Langevin()(lambda z: family.basis(state, z), x, score)
            np.testing.assert_allclose(closed[row], images, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["tied", "linear", "powers", "mixed", "members"])
def test_features_of_a_shape_have_mean_zero(kind: str) -> None:
    """20,000 draws that shape nothing; of some 400 means one beyond 4.5 standard errors: 1 in 400."""
    few, many = gaussian(0, 4, 50), gaussian(1, 1, 20_000)
    parts = (
        np.concatenate([a.reshape(1, -1, 42), b], axis=1)
        for a, b in ((few.draws, many.draws), (few.scores, many.scores))
    )
    sample = sx.Sample(*parts, NAMES)
    f = sample.x[:, 9:10]
    draws = RealDraws(sample, f / f.std(), ((0, 200), (200, 20_200)))
    assert draws.vectors
    features = shaped(Shape(draws, (200, 20_200)))[kind]
    z = features.mean(axis=0) / (features.std(axis=0) / np.sqrt(len(features)))
    assert np.abs(z).max() < 4.5


def test_no_feature_depends_on_the_draws_it_is_averaged_over() -> None:
    """Features of the second chain, a fold, span the same if other draws of that chain move."""
    sample = gaussian(1, 4, 160)
    moved = sample.draws.copy()
    moved[1, :30, 5] += 3.0
    other = sx.Sample(moved, sample.scores, NAMES)

    def apart(fold: int) -> dict[str, float]:
        before, after = (shaped(shape_of(each, fold)) for each in (sample, other))
        found = {}
        for kind, features in before.items():
            a, b = (
                each[30:] / np.linalg.norm(each[30:], axis=0) for each in (features, after[kind])
            )
            found[kind] = np.abs(b - a @ np.linalg.lstsq(a, b, rcond=None)[0]).max()
        return found

    assert max(apart(1).values()) < 1e-9
    assert min(apart(0)[kind] for kind in ("tied", "powers", "mixed")) > 1e-6


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


@pytest.mark.parametrize("once", [False, True], ids=["anywhere", "in one fold only"])
def test_columns_are_added_to_a_regression(once: bool) -> None:
    """Also where a further column is zero outside of one fold, so that its block has no inverse."""
    rng = np.random.default_rng(4)
    x, f, folds = rng.normal(size=(60, 9)), rng.normal(size=(60, 2)), ((0, 20), (20, 50))
    if once:
        x[:20, 8], x[50:, 8] = 0.0, 0.0
    narrow, draw = Regression(x[:, :5]), np.arange(60) < 50
    wide, whole = Widened(narrow, x[:, 5:]), Regression(x)
    ours, theirs = (each.leave_out(f, folds, draw=draw) for each in (wide, whole))
    for field in ("residual", "intercepts", "variance"):
        np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-9)
    assert wide.sound and not Widened(narrow, x[:, :5] @ rng.normal(size=(5, 1))).sound


def test_a_public_family_is_fitted_without_the_folds_it_is_used_on() -> None:
    """Its state is that of the draws outside each fold, in units of the sample: as written out here."""
    sample = hierarchy(5, length=60)
    found = sx.estimate("mu", sample, sx.Tied(), split=sx.CrossFit(4), audit="off")
    x, score, f = sample.x, sample.score, sample.x[:, 0]
    family = sx.Tied().placed(NAMES, np.zeros(42), np.ones(42))
    series = np.empty(240)
    for fold in range(4):
        inside = np.arange(240) // 60 == fold
        state = family.setup(x[~inside], score[~inside])
        columns = family.feature_matrix(state, x, score)
        design = np.column_stack([np.ones(240), columns])
        coefficients = np.linalg.lstsq(design[~inside], f[~inside], rcond=None)[0]
        series[inside] = f[inside] - columns[inside] @ coefficients[1:]
    np.testing.assert_allclose(found.value, [series.mean()], rtol=1e-6, atol=1e-9)


def test_vectors_of_the_family_are_named_or_given() -> None:
    sample = hierarchy(6, length=60)
    named, given = (
        sx.estimate("mu", sample, family, audit="off").value
        for family in (sx.Tied(vectors=("theta",)), sx.Tied(vectors=(tuple(range(2, 42)),)))
    )
    np.testing.assert_allclose(named, given, rtol=1e-12)
    with pytest.raises(ValueError, match="no vector is named 'phi': there are theta"):
        sx.estimate("mu", sample, sx.Tied(vectors=("phi",)))
    bare = sx.Sample(sample.draws, sample.scores, [f"a{i}" for i in range(42)])
    with pytest.raises(ValueError, match="name the columns so"):
        sx.estimate(bare.draws[..., 0], bare, sx.Tied())
    with pytest.raises(ValueError, match="have 42 coordinates, counted from 0"):
        sx.estimate("mu", sample, sx.Tied(vectors=((2, 42),)))
    with pytest.raises(ValueError, match="degree 1 or 2"):
        sx.Tied(3)
    with pytest.raises(ValueError, match="operator=Langevin"):
        sx.Tied(operator=sx.ScalarLangevin())


THOUSANDS = """
import time
import numpy as np, steinax as sx

J, CHAINS, LENGTH = 5000, 4, 100
data = np.random.default_rng(99)
error = data.uniform(0.5, 1.5, size=J)
y = 1.0 + 0.8 * data.normal(size=J) + error * data.normal(size=J)
taus = np.exp(np.linspace(np.log(0.6), np.log(1.05), 1000))
precision = 1 / (taus[:, None] ** 2 + error**2)
total = precision.sum(axis=1) + 1 / 25
centre = (precision @ y) / total
log_p = (np.log(precision).sum(axis=1) - np.log(total) - precision @ y**2 + centre**2 * total) / 2
log_p += np.log(taus) - taus**2 / 8
p = np.exp(log_p - log_p.max())
p /= p.sum()
truth, square, plain, seconds = p @ centre, 0.0, 0.0, []
for seed in range(4):
    rng = np.random.default_rng(seed)
    n = CHAINS * LENGTH
    t = np.interp(rng.random(n), np.cumsum(p), taus)[:, None]
    precision = 1 / (t**2 + error**2)
    total = precision.sum(axis=1) + 1 / 25
    mu = ((precision @ y) / total + rng.normal(size=n) / np.sqrt(total))[:, None]
    spread = 1 / (1 / t**2 + 1 / error**2)
    theta = spread * (mu / t**2 + y / error**2) + np.sqrt(spread) * rng.normal(size=(n, J))
    inside = (theta - mu) / t
    score = [-mu / 25 + (inside / t).sum(axis=1, keepdims=True)]
    score += [1 - t**2 / 4 + (inside**2 - 1).sum(axis=1, keepdims=True), (y - theta) / error**2 - inside / t]
    x = np.concatenate([mu, np.log(t), theta], axis=1).reshape(CHAINS, LENGTH, -1)
    score = np.concatenate(score, axis=1).reshape(x.shape)
    names = ["mu", "log_tau", *(f"theta[{j}]" for j in range(J))]
    sample = sx.from_arrays(x, score, names)
    began = time.process_time()
    found = sx.estimate(["mu", "log_tau", "theta[7]"], sample, audit="off")
    seconds.append(time.process_time() - began)
    square, plain = square + (found.value[0] - truth) ** 2, plain + (found.plain_value[0] - truth) ** 2
(most,) = (row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM"))
print(plain / square, max(seconds), float(most) / 1e6)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory from /proc")
def test_five_thousand_groups() -> None:
    """400 exact draws in 5,002 dimensions, four times; the gain of mu is known to a factor of three."""
    command = [sys.executable, "-c", THOUSANDS]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    gain, seconds, gigabytes = map(float, printed.split())
    assert gain > 30
    assert seconds < 20
    assert gigabytes < 1.0
