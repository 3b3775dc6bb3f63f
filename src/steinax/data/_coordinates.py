"""The points that are fitted to, draws and training points, and standardised coordinates for them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .._numerics import cholesky, namespace, solve_triangular
from .._show import counted
from .._types import AnyArray, OtherPoints, Point, Points
from ..chains import chain_statistics, linearised
from ._sample import Sample, kish_size

# The spans of the draws, and of their scores, by which a training point may lie outside them. The draws of a
# Gaussian and as many training points never differ that much, and the states of a chain that has not yet
# found the target do. Scores have heavier tails than draws.
BEYOND, BEYOND_SCORES = 1.0, 3.0
# The largest distance of the draws, by which a training point may be farther out than all of them. It is a
# Mahalanobis distance: a point can be far along a narrow ridge, and inside the span of every coordinate.
FARTHER = 1.5
MEASURED, WIDEST = (
    2000,
    1000,
)  # the most draws by which distances are measured, and the most dimensions
SETTLING = 0.2  # of the warm-up: the part in which step size and metric have not settled
GAP = 4  # autocorrelation times between the last training point of a chain and its first draw


def kept_training(sample: Sample) -> tuple[np.ndarray, ...]:
    """Flag the training points that are used, one array for each training sample.

    A point far outside the draws, or with a score far larger than theirs, would dominate a least-squares
    fit without being informative about the target. Training points that include draws were computed along
    with the draws, as leapfrog states are: a control variate fitted to them would follow the draws that
    it is used on.
    """
    return tuple(
        np.zeros(part.size, bool)
        if _share_a_point(part, sample)
        else _within(part.x, sample.x, BEYOND)
        & _within(part.score, sample.score, BEYOND_SCORES)
        & _near(part.x, sample)
        for part in sample.training
    )


def _share_a_point(part: Sample, sample: Sample) -> bool:
    """Return whether a training point is one of the draws."""
    rows = part.x[np.isin(part.x[:, 0], sample.x[:, 0])]
    draws = {draw.tobytes() for draw in sample.x.astype(np.float64)} if len(rows) else set()
    return any(row.tobytes() in draws for row in rows.astype(np.float64))


def _within(points: OtherPoints, draws: Points, spans: float) -> np.ndarray:
    """Flag points that exceed the least and largest draw by at most some spans, in all coordinates."""
    low, high = draws.min(axis=0), draws.max(axis=0)
    margin = spans * (high - low)
    return ((points >= low - margin) & (points <= high + margin)).all(axis=1)


def _near(points: OtherPoints, sample: Sample) -> np.ndarray:
    """Flag points whose distance is at most `FARTHER` times that of the draw which is farthest out.

    The distance of a draw is by the other half of its chain, as that of a training point is by other points.
    """
    if sample.dim > WIDEST:
        return np.ones(len(points), bool)
    draws = np.asarray(sample.draws[:, :: -(-sample.size // MEASURED)], np.float64)
    halves = [
        half.reshape(-1, sample.dim)
        for half in (draws[:, : draws.shape[1] // 2], draws[:, draws.shape[1] // 2 :])
    ]
    if len(halves[0]) < 2:
        return np.ones(len(points), bool)
    farthest = max(_distances(*halves).max(), _distances(*halves[::-1]).max())
    return _distances(points, np.concatenate(halves)) <= FARTHER * farthest


def _distances(points: OtherPoints, draws: Points) -> np.ndarray:
    """Compute Mahalanobis distances from draws, whose correlations are shrunk if they are few."""
    unit = draws.std(axis=0)
    unit[unit == 0] = 1.0
    z = (draws - draws.mean(axis=0)) / unit
    n, dim = z.shape
    correlation = (z.T @ z + dim * np.eye(dim)) / (n + dim)
    centred = (np.asarray(points, np.float64) - draws.mean(axis=0)) / unit
    return np.linalg.norm(solve_triangular(cholesky(correlation), centred.T), axis=0)


def training_size(sample: Sample) -> int:
    """Count the training points that are used."""
    return int(sum(kept.sum() for kept in kept_training(sample)))


def training_note(sample: Sample) -> str:
    """Say how many training points are used, and how many are not; empty if there are none."""
    if not sample.training:
        return ""
    used, given = training_size(sample), sum(part.size for part in sample.training)
    along = sum(part.size for part in sample.training if _share_a_point(part, sample))
    far = given - used - along
    reasons = [f"{far} left out: too far from the draws"] if far else []
    if along:
        reasons.append(f"{along} left out: some of them are draws")
    points = f"{counted(used, 'training point')} besides the draws" if used else "the draws alone"
    return "; ".join([f"fitted to {points}", *reasons])


type Coordinates = Callable[[Sample], tuple[AnyArray, AnyArray] | None]


def _parts(sample: Sample, training: bool) -> list[tuple[Sample, np.ndarray]]:
    """List the draws and the training samples, each with flags of the points that are used."""
    parts = [(sample, np.ones(sample.size, bool))]
    return (
        parts + list(zip(sample.training, kept_training(sample), strict=True))
        if training
        else parts
    )


def stacked(
    sample: Sample, training: bool, of: Coordinates = lambda part: (part.draws, part.scores)
) -> tuple[np.ndarray, np.ndarray]:
    """Stack the draws, and below them the training points that are used, with their scores: (rows, dim).

    Args:
        sample: the draws, with their training points.
        training: whether to include the training points.
        of: returns the draws and scores of a sample, possibly in other coordinates.
    """
    points = []
    for part, kept in _parts(sample, training):
        pair = of(part)
        assert pair is not None, "the space has no such coordinates"
        points.append([np.asarray(a, np.float64).reshape(part.size, -1)[kept] for a in pair])
    x, score = (np.concatenate(arrays) for arrays in zip(*points, strict=True))
    return x, score


def stacked_weights(sample: Sample, training: bool) -> np.ndarray | None:
    """Stack the weights of the rows of `stacked`, of mean 1 in each sample; None if all are equal."""
    parts = _parts(sample, training)
    if all(part.weights is None for part, _ in parts):
        return None
    return np.concatenate(
        [np.ones(k.sum()) if part.weights is None else part.weights.ravel()[k] for part, k in parts]
    )


def autocorrelation_of(sample: Sample) -> float:
    """Compute the draws per independent draw: the median over the columns of draws and scores."""
    columns = np.concatenate([sample.draws, sample.scores], axis=-1, dtype=np.float64)
    ess = chain_statistics(linearised(columns, sample.weights)).ess
    return float(np.median(np.fmax(sample.size / ess, 1.0)))


def with_warmup(sample: Sample, warmup: Sample | None) -> Sample:
    """Add the settled part of the warm-up to a sample, as training points.

    The first fifth of the warm-up is left out, because step size and metric have not settled, and so are the
    last four autocorrelation times before the first draw: a fit to neighbours of a draw would follow that
    draw.

    Args:
        sample: the draws.
        warmup: all warm-up draws of the same chains, in order; None for none.

    >>> x = np.random.default_rng(0).normal(size=(4, 300, 2))
    >>> sample, warmup = Sample(x[:, 200:], -x[:, 200:]), Sample(x[:, :200], -x[:, :200])
    >>> with_warmup(sample, warmup)
    Sample(4 chains x 100 draws, 2 dimensions: x[0], x[1], 624 training points)
    """
    if warmup is None:
        return sample
    first = int(np.ceil(SETTLING * warmup.length))
    last = warmup.length - int(np.ceil(GAP * autocorrelation_of(sample)))
    if last <= first:
        return sample
    return sample.with_training(*sample.training, warmup.isel(draw=slice(first, last)))


DRAWS_PER_SCORE = 1.5  # draws per dimension for the full covariance from draws and scores


def covariance_of(x: Points, score: Points) -> tuple[Any, Any]:
    r"""Estimate mean and covariance from draws and scores: exactly, from few draws, for a Gaussian.

    $S$ solves $S C_s S = C_x$, with $C_x$ and $C_s$ the covariances of draws and scores, and the mean is
    $\bar x + S \bar s$. A Gaussian's scores are $-\Sigma^{-1} (x - m)$, which gives $S = \Sigma$ and $m$.
    With fewer than 1.5 draws per dimension $S$ is diagonal.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(10, 2)) * [1.0, 3.0] + 5.0
    >>> mean, covariance = covariance_of(x, -(x - 5.0) / [1.0, 9.0])
    >>> bool(np.allclose(mean, 5.0) and np.allclose(covariance, np.diag([1.0, 9.0])))
    True
    """
    xp = namespace(x)
    if xp is np:
        x, score = np.asarray(x, np.float64), np.asarray(score, np.float64)
    spreads = (xp.where(each > 0, each, 1.0) for each in (xp.std(x, axis=0), xp.std(score, axis=0)))
    unit = xp.sqrt(xp.divide(*spreads))
    z, slope = (x - xp.mean(x, axis=0)) / unit, (score - xp.mean(score, axis=0)) * unit
    if len(x) < DRAWS_PER_SCORE * x.shape[1]:
        steep = xp.std(slope, axis=0)
        covariance = xp.diag(xp.std(z, axis=0) / xp.where(steep > 0, steep, 1.0))
    else:
        values, vectors = xp.linalg.eigh(slope.T @ slope)
        root = xp.sqrt(xp.maximum(values, 1e-12 * xp.max(values)))
        inner, inverse = (vectors * power @ vectors.T for power in (root, 1 / root))
        values, vectors = xp.linalg.eigh(inner @ (z.T @ z) @ inner)
        middle = vectors * xp.sqrt(xp.maximum(values, 0.0)) @ vectors.T
        covariance = inverse @ middle @ inverse
    covariance = unit[:, None] * covariance * unit
    return xp.mean(x, axis=0) + covariance @ xp.mean(score, axis=0), covariance


def fresh_points(sample: Sample, count: int) -> np.ndarray:
    """Draw points from a Gaussian with the mean and covariance of the draws, (count, dim).

    They depend on the draws only through mean and covariance, so a fit cannot adapt to single draws.

    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> fresh_points(Sample(x, -x), 500).shape
    (500, 2)
    """
    mean, covariance = covariance_of(sample.x, sample.score)
    values, vectors = np.linalg.eigh(covariance)
    z = np.random.default_rng(0).normal(size=(count, sample.dim))
    return mean + z * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


# Draws per dimension from which on draws are whitened with the full covariance; with fewer its small
# eigenvalues are noise, and scaling each coordinate separately is better.
DRAWS_PER_DIM = 5


class AffineMap(eqx.Module):
    r"""The affine map $x = a + B z$ for draws and scores.

    The density of $z = B^{-1}(x - a)$ has the score $B^\top \nabla \log \pi(x)$, so a function with
    mean zero under one density has mean zero under the other.

    Args:
        shift: $a$, shape (dim,).
        scale: $B$, lower triangular of shape (dim, dim), or its diagonal of shape (dim,).

    >>> import numpy as np
    >>> double = AffineMap(np.zeros(2), np.array([2.0, 2.0]))
    >>> z, score = double(np.ones((1, 2)), -np.ones((1, 2)))
    >>> z.tolist(), score.tolist()
    ([[0.5, 0.5]], [[-2.0, -2.0]])
    """

    shift: Point
    scale: Float[AnyArray, " dim"] | Float[AnyArray, "dim dim"]

    def __call__(self, x: Points, score: Points) -> tuple[AnyArray, AnyArray]:
        """Transform draws and scores to the coordinates $z$."""
        centred = x - self.shift
        if self.scale.ndim == 1:
            return centred / self.scale, score * self.scale
        return solve_triangular(self.scale, centred.T).T, score @ self.scale


# The eigenvalues of the covariance from draws and scores, relative to that of the draws, for it to be used.
AGREEING = (0.25, 4.0)


def standardise(
    x: Points,
    whiten: bool | None = None,
    weights: Float[AnyArray, " n"] | None = None,
    score: Points | None = None,
) -> AffineMap:
    r"""Find the affine map under which the draws have mean 0 and covariance (or variances) 1.

    The factor $B$ with $B B^\top = \operatorname{cov}(x)$ comes from a QR decomposition of the
    centred draws, not from their covariance, whose condition number is the square of theirs.

    With scores, mean and covariance are those of `covariance_of`, unless that covariance differs much from
    the draws' own. They are exact for a Gaussian, and vary far less from sample to sample for targets close
    to one. That matters for estimates: coordinates that depend on the draws carry a little of held-out draws
    into the control variates used on them, which biases accurate estimates by about a standard error.

    Args:
        x: the draws, shape (n, dim).
        whiten: use the full covariance; by default, if there are at least five draws per
            dimension. Otherwise each coordinate is scaled by its own standard deviation.
        weights: weights of mean 1, (n,), for a weighted mean and covariance.
        score: the scores; used for the full covariance of draws without weights.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1e6] + 3.0
    >>> z, _ = standardise(x)(x, x)
    >>> np.allclose(np.cov(z.T), np.eye(2), atol=1e-4)
    True
    """
    n, dim = x.shape
    xp = namespace(x)
    if weights is None:
        shift = xp.mean(x, axis=0)
        centred = x - shift
    else:
        shift = xp.mean(weights[:, None] * x, axis=0)
        centred = xp.sqrt(weights)[:, None] * (x - shift)
    deviation = xp.sqrt(xp.sum(centred**2, axis=0) / max(n - 1, 1))
    if whiten is None:
        whiten = n >= DRAWS_PER_DIM * dim
    if not whiten or dim == 1:
        return AffineMap(shift, deviation)
    # scale the columns first, so that the factor is that of the correlation matrix
    upper = xp.linalg.qr(centred / deviation)[1] / (n - 1.0) ** 0.5
    upper = upper * xp.where(xp.linalg.diagonal(upper) < 0, -1.0, 1.0)[:, None]
    white = AffineMap(shift, (upper * deviation).T)
    if score is None or weights is not None:
        return white
    mean, covariance = covariance_of(*white(x, score))
    values = xp.linalg.eigvalsh(covariance)
    if not (values[0] >= AGREEING[0] and values[-1] <= AGREEING[1]):
        return white
    return AffineMap(shift + white.scale @ mean, white.scale @ cholesky(covariance))


def check_moves(sample: Sample) -> None:
    """Refuse a sample that cannot be standardised: a dimension is constant, or too wide or narrow."""
    if sample.size == 1:
        raise ValueError("one draw has no spread to estimate from: give 20 or more.")
    span = np.ptp(sample.x.astype(np.float64), axis=0)
    if (span == 0).any():
        raise ValueError(
            f"these dimensions never change: {_first(sample, span == 0)}. A constant has no posterior to "
            "average over: leave those columns out of draws and scores."
        )
    limit = float(np.finfo(sample.dtype).max) ** (1 / 3)
    unfit = (span > limit) | (span < 1 / limit)
    if unfit.any():
        raise ValueError(
            f"these dimensions span more than {limit:.0e} or less than {1 / limit:.0e}, which {sample.dtype} "
            f"cannot square: {_first(sample, unfit)}. Give draws and scores in other units."
        )
    steep = np.abs(sample.score.astype(np.float64)).max(axis=0) > limit / span
    if steep.any():
        raise ValueError(
            f"these dimensions have scores of more than {limit:.0e} per span of the draws: "
            f"{_first(sample, steep)}. Scores are gradients of the log density at the draws: fix them, or "
            "leave out the draws at which they overflow."
        )


def _first(sample: Sample, which: np.ndarray) -> str:
    """List the names of the first five dimensions at which a mask is true."""
    return ", ".join(np.array(sample.names)[which][:5])


CORRELATION = 0.5  # least correlation of log |score|^2 with a coordinate that may drive a funnel
RATES = (-2.0, -1.0, 1.0, 2.0)  # rates for log scales, log variances and logs of their inverses
SPREAD = (0.3, 4.0)  # range of standard deviations of a coordinate that may be such a logarithm
GAIN = 1.0  # least gain in log likelihood, nats per draw, beyond that of overfitting
SHARES = np.concatenate([[0.0], 1 / (1 + np.exp(-np.linspace(-9, 9, 37)))])


class FunnelMap(eqx.Module):
    r"""Coordinates in which a funnel becomes a cylinder: non-centring estimated from the draws.

    In a funnel one coordinate $t$ (usually the logarithm of a scale) sets the width of the others.
    With $p_i(t) = 1 - \lambda_i + \lambda_i e^{-\gamma t}$ the precision of a direction $y_i$ of
    the other coordinates, the new coordinates are $t$ and

    $$ z_i = \sqrt{p_i(t)}\, (y_i - m_i) . $$

    The scores transform as $s_{z_i} = s_{y_i} / \sqrt{p_i}$, and with $h_i = -\tfrac12 \log p_i$

    $$ s_t \to s_t + \sum_i h_i'(t) \bigl( 1 + s_{y_i} (y_i - m_i) \bigr) . $$

    Args:
        driver: the index of the coordinate $t$.
        shift: the mean of the draws.
        scale: the standard deviations of the draws; $t$ and $y$ are directions of standardised draws.
        mix: $V$ with $y = V^{-1} x$ and $s_y = V^\top s$, for the other coordinates.
        share: $\lambda$, between 0 (the width is constant) and 1.
        rate: $\gamma$.
        middle: $m$.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> t, z = (
    ...     rng.normal(size=(400, 1)),
    ...     rng.normal(size=(400, 3)),
    ... )  # the log scale, and scaled coordinates
    >>> y = z * np.exp(t)
    >>> score = np.hstack([-t + (z**2 - 1).sum(axis=1, keepdims=True), -z * np.exp(-t)])
    >>> funnel = find_funnel(np.hstack([t, y]), score)
    >>> funnel.driver
    0
    """

    driver: int = eqx.field(static=True)
    shift: Point
    scale: Point
    mix: Float[AnyArray, "other other"]
    share: Float[AnyArray, " other"]
    rate: Float[AnyArray, ""]
    middle: Float[AnyArray, " other"]

    def __call__(self, x: Points, score: Points) -> tuple[AnyArray, AnyArray]:
        """Transform draws and scores to the new coordinates, the driver first."""
        xp = namespace(x)
        others = np.delete(np.arange(x.shape[1]), self.driver)
        x, score = (x - self.shift) / self.scale, score * self.scale
        t, slope = x[:, self.driver], score[:, self.driver]
        y = xp.linalg.solve(self.mix, x[:, others].T).T - self.middle
        s = score[:, others] @ self.mix
        decay = xp.exp(-self.rate * t)[:, None]
        precision = 1 - self.share + self.share * decay
        widening = 0.5 * self.rate * self.share * decay / precision
        slope = slope + xp.sum(widening * (1 + s * y), axis=1)
        inverse_width = xp.sqrt(precision)
        return (
            xp.concat([t[:, None], y * inverse_width], axis=1),
            xp.concat([slope[:, None], s / inverse_width], axis=1),
        )


def find_funnel(x: Points, score: Points) -> FunnelMap | None:
    r"""Find the map that straightens a funnel; None if there is no clear funnel.

    The scores of a funnel are large where it is narrow: $E[s s^\top \mid t] = A + B e^{-\gamma t}$.
    The coordinate most correlated with $\log |s|^2$ is the candidate for $t$; two weighted moments of the
    other scores give the directions that diagonalise $A$ and $B$ together, and the share of each direction
    maximises the Gaussian likelihood of its scores. The map is used if that is far above the likelihood
    with one covariance for all draws.

    Args:
        x: the draws, (n, dim).
        score: their scores.
    """
    x, score = np.asarray(x, np.float64), np.asarray(score, np.float64)
    n, dim = x.shape
    driver = _driver(x, score) if dim > 1 and n > 4 * dim else None
    if driver is None:
        return None
    shift, scale = x.mean(axis=0), x.std(axis=0)
    others = np.delete(np.arange(dim), driver)
    t, s = (x[:, driver] - shift[driver]) / scale[driver], score[:, others] * scale[others]
    fits = [(*_widths(t, s, rate * scale[driver]), rate * scale[driver]) for rate in RATES]
    gain, mix, share, rate = max(fits, key=lambda fit: fit[0])
    if not gain - dim * (dim - 1) / (2 * n) > GAIN:
        return None
    y = np.linalg.solve(mix, ((x - shift) / scale)[:, others].T).T
    precision = 1 - share + np.outer(np.exp(-rate * t), share)
    middle = (precision * y).sum(axis=0) / precision.sum(axis=0)
    return FunnelMap(driver, shift, scale, mix, share, np.asarray(rate), middle)


def _driver(x: np.ndarray, score: np.ndarray) -> int | None:
    """Find the coordinate most correlated with the log size of the scores; None if none is."""
    centred, spread = x - x.mean(axis=0), x.std(axis=0)
    slope = score * spread
    unit = centred / np.where(spread > 0, spread, 1.0)
    enough = len(x) >= DRAWS_PER_DIM * x.shape[1]
    # |B's|^2 with B B' the covariance, if there are enough draws to estimate it
    white = slope @ (unit.T @ unit / len(x)) if enough else slope
    size = np.log(np.maximum((white * slope).sum(axis=1), np.finfo(float).tiny))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.abs(centred.T @ (size - size.mean())) / (len(x) * spread * size.std())
    correlation = np.where((spread > SPREAD[0]) & (spread < SPREAD[1]), correlation, 0.0)
    best = int(np.argmax(correlation))
    return best if correlation[best] > CORRELATION else None


def _widths(t: np.ndarray, s: np.ndarray, rate: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Compute the gain in log likelihood per draw, the directions and their shares, for one rate."""
    n, decay = len(t), np.exp(-rate * t)
    narrow = decay > 1
    if min(narrow.sum(), n - narrow.sum()) <= s.shape[1]:
        return -np.inf, np.eye(s.shape[1]), np.zeros(s.shape[1])
    inner = (s[narrow] / decay[narrow, None]).T @ s[narrow] / narrow.sum()
    outer = s[~narrow].T @ s[~narrow] / (n - narrow.sum())
    values, vectors = np.linalg.eigh(inner + outer)
    white = vectors / np.sqrt(np.maximum(values, 1e-10 * values.max()))
    directions = white @ np.linalg.eigh(white.T @ inner @ white)[1]
    squares = (s @ directions) ** 2
    precision = (1 - SHARES) + np.outer(decay, SHARES)
    variance = (1 / precision).T @ squares / n
    profile = -0.5 * (np.log(variance) + np.log(precision).mean(axis=0)[:, None])
    best = profile.argmax(axis=0), np.arange(s.shape[1])
    constant_width = -0.5 * np.log(np.linalg.eigvalsh(s.T @ s / n)).sum()
    gain = profile[best].sum() + np.linalg.slogdet(directions)[1] - constant_width
    return gain, directions / np.sqrt(variance[best]), SHARES[best[0]]


def spread_of(sample: Sample) -> tuple[bool | None, AnyArray | None]:
    """Decide whether to whiten, and the weights, (n,), to standardise with; None if they are equal.

    Weights equivalent to a handful of draws estimate the spread worse than the unweighted draws do.
    """
    if sample.weights is None or np.ptp(sample.weights) == 0:
        return None, None
    if kish_size(sample.weights) < DRAWS_PER_DIM:
        return None, None
    whiten = kish_size(sample.weights) >= DRAWS_PER_DIM * sample.dim
    return whiten, sample.weights.ravel().astype(np.float64)
