"""Fields with kinks: exact for Gaussians, of mean zero for others, and refused where they make no sense."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal, norm

import steinax as sx
from steinax.data import exceeding, integrands
from steinax.families import along_of, corners_of, curved_of

ROOT = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.5, 0.5, 2.0]])
ALONG = np.array([[1.0, 0.0], [-2.0, 0.0], [0.5, 1.0]])


def gaussian(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    z = np.random.default_rng(seed).normal(size=(n, 3))
    return 3 + z @ ROOT.T, -z @ np.linalg.inv(ROOT)


def log_gamma(n: int, seed: int = 0, dim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Draws of logarithms of gamma variables of shape 3, which are skewed."""
    x = np.log(np.random.default_rng(seed).gamma(3.0, size=(n, dim)))
    return x, 3 - np.exp(x)


def test_a_jump_of_a_gaussian_is_left_constant() -> None:
    x, score = gaussian(60)
    thresholds = np.array([-2.5, 4.0])
    left = (x @ ALONG > thresholds) - along_of(x, score, ALONG).images(x, score, thresholds)
    sd = np.linalg.norm(ROOT.T @ ALONG, axis=0)
    truth = norm.sf(thresholds, 3 * ALONG.sum(axis=0), sd)
    np.testing.assert_allclose(left, np.broadcast_to(truth, left.shape), atol=2e-5)


def test_an_excess_of_a_gaussian_is_left_constant() -> None:
    x, score = gaussian(60)
    thresholds = np.array([-2.5, 4.0])
    shape = along_of(x, score, ALONG)
    left = np.maximum(x @ ALONG - thresholds, 0) - shape.images(x, score, thresholds, order=2)
    sd = np.linalg.norm(ROOT.T @ ALONG, axis=0)
    z = (thresholds - 3 * ALONG.sum(axis=0)) / sd
    truth = sd * (norm.pdf(z) - z * norm.sf(z))
    np.testing.assert_allclose(left, np.broadcast_to(truth, left.shape), atol=5e-5)


def test_kinks_of_second_order_for_an_expected_excess() -> None:
    x, score = log_gamma(400)
    sample = sx.Sample(x.reshape(4, 100, 3), score.reshape(4, 100, 3), ["a", "b", "c"])
    excess = {"f": np.maximum(sample.draws[..., 1] - 1.2, 0)}
    kinks, smooth = sx.Kinks("b", 1.2, order=2) + sx.Polynomial(2), sx.Polynomial(2)
    ours, usual = (sx.estimate(excess, sample, family) for family in (kinks, smooth))
    truth = quad(lambda v: max(np.log(v) - 1.2, 0) * gamma.pdf(v, 3), np.exp(1.2), 40)[0]
    assert ours.mcse[0] < usual.mcse[0] / 3
    assert abs(ours.value[0] - truth) < 4 * ours.mcse[0]


def test_a_corner_of_a_gaussian_is_left_constant() -> None:
    """Two pairs of combinations: correlated, and with a correlation of opposite sign."""
    x, score = gaussian(80)
    pairs = np.stack([ALONG, [[0.0, 1.0], [1.0, 0.5], [0.0, -0.3]]])
    thresholds = np.array([[-2.5, 4.0], [3.5, 3.0]])
    both = np.all([x @ a > t for a, t in zip(pairs, thresholds, strict=True)], axis=0)
    left = both - corners_of(x, score, pairs).images(x, score, thresholds)
    for j in range(2):
        a = pairs[..., j]
        law = multivariate_normal(-3 * a.sum(axis=1), a @ ROOT @ ROOT.T @ a.T)
        np.testing.assert_allclose(left[:, j], law.cdf(-thresholds[:, j]), atol=2e-5)


def test_images_of_corners_have_mean_zero_where_the_marginals_are_wrong() -> None:
    """The mean over a fine grid of quantiles of two independent variables, of another law than the tables."""
    x, score = log_gamma(30, seed=1, dim=2)
    tables = corners_of(2 * x - 1, score, np.array([[[1.0], [0.4]], [[0.0], [1.0]]]))
    u = np.log(gamma.ppf((np.arange(1500) + 0.5) / 1500, 3))
    points = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    images = tables.images(points, 3 - np.exp(points), np.array([[1.2], [0.9]]))
    assert abs(images.mean()) < 2e-3 * images.std()
    assert images.std() > 0.1


def test_images_of_curves_have_mean_zero_also_where_these_are_flat() -> None:
    """The mean over a fine grid of quantiles of two variables; the function has a saddle at their centre."""
    x, score = log_gamma(200, seed=1, dim=2)
    sample = sx.Sample(x[None], score[None])
    event = exceeding(lambda x: (x[0] - 1) * (x[1] - 1), 0.1)
    ((step,),) = integrands(event, sample, jumps=True).steps
    tables = curved_of(2 * x - 1, score, step.along)
    u = np.log(gamma.ppf((np.arange(1500) + 0.5) / 1500, 3))
    points = np.stack(np.meshgrid(u, u, indexing="ij"), axis=-1).reshape(-1, 2)
    images = tables.images(points, 3 - np.exp(points), step.threshold)
    assert np.isfinite(images).all()
    assert abs(images.mean()) < 2e-3 * images.std()


def test_tables_reach_into_tails_where_densities_vanish() -> None:
    """The score is -c^3, the density at the ends of the draws exp(-40,000), and the tail over it 1 / c^3."""
    c = np.linspace(-20.0, 20.0, 400)[:, None]
    marginal = along_of(c, -(c**3), np.eye(1)).marginal
    far = np.abs(marginal.grid()[:, 0] - 14) < 6
    ratio = marginal.above[far, 0] * marginal.scale * marginal.grid()[far, 0] ** 3
    np.testing.assert_allclose(ratio, 1, rtol=0.08)


def test_the_marginal_density_of_a_skewed_coordinate() -> None:
    x, score = log_gamma(4000)
    at = np.log([1.0, 3.0, 6.0])
    found = along_of(x, score, np.eye(3)[:, [0, 0, 0]]).marginal.density(at)
    np.testing.assert_allclose(found, gamma.pdf(np.exp(at), 3) * np.exp(at), rtol=0.03)


def test_images_have_mean_zero_where_the_marginal_is_wrong() -> None:
    """The tables are of 30 draws of another target; the mean is over a fine grid of quantiles."""
    x, score = log_gamma(30, seed=1)
    wrong = along_of(2 * x - 1, score, np.eye(3)[:, :2])
    u = (np.arange(200_000) + 0.5) / 200_000
    first = np.log(gamma.ppf(u, 3))
    points = np.stack([first, np.zeros_like(u), np.zeros_like(u)], axis=1)
    # the field is along b; the other coordinates have a Gaussian's score at its centre, 0
    scores = np.stack([3 - np.exp(first), np.zeros_like(u), np.zeros_like(u)], axis=1)
    wrong = wrong._replace(field=np.eye(3)[:, :2])
    images = wrong.images(points, scores, np.array([0.4, 0.0]))[:, 0]
    assert abs(images.mean()) < 1e-4 * images.std()
    assert images.std() > 0.1


def test_names_indices_and_weights_are_the_same_combination() -> None:
    x, score = log_gamma(400)
    sample = sx.Sample(x.reshape(4, 100, 3), score.reshape(4, 100, 3), ["a", "b", "c"])
    event = {"p": sample.draws[..., 1] > 1.2}
    found = [
        sx.estimate(event, sample, sx.Kinks(along, 1.2)) for along in ("b", 1, (0.0, 1.0, 0.0))
    ]
    assert found[0].value == found[1].value == found[2].value
    assert found[0].worth[0] > 20
    truth = gamma.sf(np.exp(1.2), 3)
    assert abs(found[0].value[0] - truth) < 4 * found[0].mcse[0]


def test_beside_a_polynomial() -> None:
    x, score = log_gamma(400)
    sample = sx.Sample(x.reshape(4, 100, 3), score.reshape(4, 100, 3))
    event = {"p": sample.draws[..., 1] > 1.2}
    kinks = sx.Kinks(1, 1.2)
    alone, both, smooth = (
        sx.estimate(event, sample, family).mcse[0]
        for family in (kinks, kinks + sx.Polynomial(2), sx.Polynomial(2))
    )
    assert both < alone < smooth / 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sx.Kinks(0, ()), "one or several numbers"),
        (lambda: sx.Kinks(0, np.nan), "one or several numbers"),
        (lambda: sx.Kinks(0, 1.0, order=3), "1 for jumps, or 2 for kinks"),
        (lambda: sx.Kinks(0, 1.0, operator=sx.ScalarLangevin()), r"operator=Langevin\(\)"),
        (lambda: sx.Kinks(3, 1.0), "3 coordinates, counted from 0"),
        (lambda: sx.Kinks("z", 1.0), "is named 'z'; there are a, b, c"),
        (lambda: sx.Kinks((1.0, 2.0), 1.0), "2 weights for 3 coordinates"),
        (lambda: sx.Kinks((0.0, 0.0, 0.0), 1.0), "not all zero"),
    ],
)
def test_refusals_say_what_to_do(make, message: str) -> None:
    x, score = gaussian(40)
    sample = sx.Sample(x[None], score[None], ["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        sx.estimate("a", sample, make())


def test_a_name_needs_names() -> None:
    with pytest.raises(ValueError, match="through fit or estimate"):
        sx.Kinks("a", 1.0).setup(*gaussian(40))
