import equinox as eqx
import numpy as np

from .._types import AnyArray


class Candidates(eqx.Module):
    """What an automatic estimate tried on all draws, and how it scored: print it for a table.

    Attributes:
        left: the held-out variance that each leaves, as a part of the plain one, (candidate, k).
        best: which was chosen for each integrand, (k,).
        names: of the candidates, plain Monte Carlo first.

    >>> import numpy as np
    >>> print(Candidates(np.array([[1.0], [0.01]]), np.array([1]), ("plain", "Polynomial(1)")))
    variance left (geometric mean)  chosen by  candidate
                                 1          0  plain
                              0.01          1  Polynomial(1)
    """

    left: AnyArray
    best: AnyArray
    names: tuple[str, ...] = eqx.field(static=True)

    def of(self, integrand: int) -> "Candidates":
        """The same for one integrand."""
        own = slice(integrand, integrand + 1)
        return Candidates(self.left[:, own], self.best[own], self.names)

    def __repr__(self) -> str:
        tiny = np.finfo(float).tiny
        mean = np.exp(np.log(np.maximum(self.left, tiny)).mean(axis=1))
        chosen = np.bincount(self.best, minlength=len(self.names))
        heading = "variance left (geometric mean)  chosen by  candidate"
        rows = zip(mean, chosen, self.names, strict=True)
        lines = [f"{left:>30.3g}  {count:>9d}  {name}" for left, count, name in rows]
        return "\n".join([heading, *lines])

    __str__ = __repr__
