import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._types import AnyArray, Point, Points
from ._sample import Sample

# Whiten with the whole covariance only when there are this many draws per dimension; with fewer
# its small eigenvalues are noise, and the coordinates' own scales are the better choice.
DRAWS_PER_DIM = 5


class AffineMap(eqx.Module):
    r"""The map $x = a + B z$ that carries draws and scores together.

    With $z = B^{-1}(x - a)$ the density of $z$ has the score $B^\top \nabla \log \pi(x)$, so a
    function of mean zero under one is a function of mean zero under the other.

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
        """The draws and scores in the coordinates $z$."""
        centred = x - self.shift
        if self.scale.ndim == 1:
            return centred / self.scale, score * self.scale
        z = jax.scipy.linalg.solve_triangular(self.scale, centred.T, lower=True).T
        return z, score @ self.scale


def standardise(
    x: Points, whiten: bool | None = None, weights: Float[AnyArray, " n"] | None = None
) -> AffineMap:
    r"""The affine map under which the draws have mean 0 and covariance (or variances) 1.

    The factor $B$ with $B B^\top = \operatorname{cov}(x)$ comes from a QR decomposition of the
    centred draws, not from their covariance, whose condition number is the square of theirs.

    Args:
        x: the draws, shape (n, dim).
        whiten: use the whole covariance; by default, when there are at least five draws per
            dimension. Otherwise each coordinate is scaled by its own standard deviation.
        weights: of mean 1, where the mean and covariance are to be weighted ones.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 1e6] + 3.0
    >>> z, _ = standardise(x)(x, x)
    >>> np.allclose(np.cov(z.T), np.eye(2), atol=1e-4)
    True
    """
    n, dim = x.shape
    if weights is None:
        shift = jnp.mean(x, axis=0)
        centred = x - shift
    else:
        shift = jnp.mean(weights[:, None] * x, axis=0)
        centred = jnp.sqrt(weights)[:, None] * (x - shift)
    deviation = jnp.sqrt(jnp.sum(centred**2, axis=0) / max(n - 1, 1))
    if whiten is None:
        whiten = n >= DRAWS_PER_DIM * dim
    if not whiten or dim == 1:
        return AffineMap(shift, deviation)
    # columns of equal size first, so that only the correlation is left to the factor
    upper = jnp.linalg.qr(centred / deviation, mode="r") / jnp.sqrt(n - 1.0)
    upper = upper * jnp.where(jnp.diag(upper) < 0, -1.0, 1.0)[:, None]
    return AffineMap(shift, (upper * deviation).T)


def check_moves(sample: Sample) -> None:
    """Refuse a sample that cannot be standardised: a dimension never moves, or by too much or too little."""
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
            f"{_first(sample, steep)}. Scores are gradients of the log density at the draws: mend them, or "
            "leave out the draws at which they overflow."
        )


def _first(sample: Sample, which: np.ndarray) -> str:
    return ", ".join(np.array(sample.names)[which][:5])
