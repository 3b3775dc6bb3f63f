import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from .._types import AnyArray, Values
from ._losses import AbstractObjective


class SpectralVariance(AbstractObjective):
    r"""The asymptotic variance of the average of $r = f - g$ along a chain, by a Bartlett window.

    $$ \frac1m \sum_{s, t} \Big(1 - \frac{|s - t|}{b}\Big)_+ (r_s - c)(r_t - c) , $$

    over pairs of draws in one unbroken piece of a chain (Belomestny, Iosipoi, Moulines, Naumov and
    Samsonov, 2019). It is $b$ times the mean square of averages over $b$ consecutive draws. Least
    squares is $b = 1$: there every draw counts for itself, and what makes a chain slow is not seen.

    Args:
        width: $b$, in draws; by default the root of a chain's length.

    >>> import jax.numpy as jnp
    >>> there_and_back = jnp.array([[1.0], [-1.0], [1.0], [-1.0]])
    >>> SpectralVariance(width=1)(there_and_back, jnp.zeros(1)).tolist()
    [1.0]
    >>> SpectralVariance(width=2)(there_and_back, jnp.zeros(1)).tolist()
    [0.25]
    """

    is_quadratic = True
    width: int | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.width is not None and self.width < 1:
            raise ValueError(
                f"SpectralVariance(width={self.width}): give the number of draws in a window, 1 or more."
            )

    @property
    def reach(self) -> int:
        return self.width or 1

    def __call__(self, rest: Values, intercept: Float[AnyArray, " k"]) -> jax.Array:
        return self.along(rest, intercept, None)

    def along(
        self, rest: Values, intercept: Float[AnyArray, " k"], segment: AnyArray | None
    ) -> jax.Array:
        centred = rest - intercept
        return jnp.mean(centred * self.smooth(centred, segment), axis=0)

    def prepared(self, length: int) -> "SpectralVariance":
        return SpectralVariance(self.width or max(1, round(length**0.5)))

    def smooth(self, values: Values, segment: AnyArray | None) -> jax.Array:
        r"""The product $W v$ with the matrix of the window's weights, in $O(b)$ shifts: (n, k).

        Args:
            values: a column for each integrand or feature, (n, k).
            segment: the piece of a chain that each draw is of, (n,); all of one by default.
        """
        n = values.shape[0]
        width = self.prepared(n).width or 1
        place = jnp.arange(n)
        piece = jnp.zeros(n, int) if segment is None else jnp.asarray(segment)

        def add(lag: jax.Array, total: jax.Array) -> jax.Array:
            pair = (place >= lag) & (piece == jnp.roll(piece, lag))  # of a draw and one before it
            earlier = jnp.where(pair[:, None], jnp.roll(values, lag, axis=0), 0.0)
            later = jnp.roll(jnp.where(pair[:, None], values, 0.0), -lag, axis=0)
            return total + (1 - lag / width) * (earlier + later)

        return jax.lax.fori_loop(1, width, add, jnp.asarray(values))
