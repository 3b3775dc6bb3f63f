import equinox as eqx
import numpy as np

from .._show import html_table
from .._types import AnyArray


class Candidates(eqx.Module):
    """What an automatic estimate tried on all draws, how it scored and how it was mixed: print it.

    Attributes:
        left: the held-out variance that each leaves, as a part of the plain one, (candidate, k); NaN
            where an integrand's own search did not lead to it.
        mixture: the weight of each in each integrand's control variate, (candidate, k).
        names: of the candidates, plain Monte Carlo first.

    >>> import numpy as np
    >>> print(
    ...     Candidates(np.array([[1.0], [0.01]]), np.array([[0], [1]]), ("plain", "Polynomial(1)"))
    ... )
    variance left (geometric mean)  weight  candidate
                              0.01     100%  Polynomial(1)
                                 1       0%  plain
    """

    left: AnyArray
    mixture: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)

    def of(self, some: list[int]) -> "Candidates":
        """What was tried for some of the integrands."""
        left = np.asarray(self.left)[:, some]
        rows = np.flatnonzero(~np.isnan(left).all(axis=1))
        mixture, names = np.asarray(self.mixture)[:, some], tuple(self.names[i] for i in rows)
        return Candidates(left[rows], mixture[rows], names)

    @property
    def mean(self) -> np.ndarray:
        """The geometric mean of `left` over the integrands that it was tried for, (candidate,)."""
        return np.exp(np.nanmean(np.log(np.maximum(self.left, np.finfo(float).tiny)), axis=1))

    def __repr__(self) -> str:
        heading = "variance left (geometric mean)  weight  candidate"
        lines = [f"{left:>30}  {weight:>6}  {name}" for name, left, weight in self._rows()]
        return "\n".join([heading, *lines])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        headings = ("candidate", "variance left (geometric mean)", "weight")
        return html_table(headings, self._rows(), [])

    def _rows(self) -> list[tuple[str, str, str]]:
        """Name, variance left and weight of each, the best first."""
        mean, weight = self.mean, 100 * np.asarray(self.mixture).mean(axis=1)
        return [(self.names[i], f"{mean[i]:.3g}", f"{weight[i]:.0f}%") for i in mean.argsort()]
