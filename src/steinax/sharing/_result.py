from collections.abc import Iterator

import equinox as eqx
import numpy as np

from .._types import AnyArray
from ..estimation import Estimate
from ..estimation._table import times


class Related(eqx.Module):
    """The estimates of several related tasks: one `Estimate` for each, and how the tasks are related.

    An index gives a task's `Estimate`; numbers of all of them are arrays (task, k).

    Attributes:
        estimates: one for each task, in order; `chosen` says which fit each integrand got.
        relation: the matrix between tasks that was learned, scaled to correlations, (task, task).

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(3, 1, 20, 1))
    >>> found = sx.estimate_related("x", [sx.Sample(one, -one) for one in x])
    >>> len(found), found.value.shape, found.relation.shape
    (3, (3, 1), (3, 3))
    """

    estimates: tuple[Estimate, ...]
    relation: AnyArray

    @property
    def value(self) -> np.ndarray:
        """The estimates, (task, k)."""
        return self._stacked("value")

    @property
    def mcse(self) -> np.ndarray:
        """Their Monte Carlo standard errors, (task, k)."""
        return self._stacked("mcse")

    @property
    def plain_value(self) -> np.ndarray:
        """The averages of f, (task, k)."""
        return self._stacked("plain_value")

    @property
    def plain_mcse(self) -> np.ndarray:
        """Their Monte Carlo standard errors, (task, k)."""
        return self._stacked("plain_mcse")

    @property
    def worth(self) -> np.ndarray:
        """How many times as many plain draws would be as accurate, (task, k)."""
        return self._stacked("worth")

    @property
    def chosen(self) -> tuple[tuple[str, ...], ...]:
        """The fit that each integrand of each task got."""
        return tuple(one.chosen for one in self.estimates)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Intervals that cover the expectations with this probability, (task, k, 2)."""
        return np.stack([one.interval(level) for one in self.estimates])

    def _stacked(self, name: str) -> np.ndarray:
        return np.stack([getattr(one, name) for one in self.estimates])

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, index: int) -> Estimate:
        return self.estimates[index]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __repr__(self) -> str:
        flat = [one for row in self.chosen for one in row]
        counts = ", ".join(f"{flat.count(one)} {one}" for one in dict.fromkeys(flat))
        low, middle, high = np.nanquantile(self.worth, [0.05, 0.5, 0.95])
        return (
            f"Related({len(self)} tasks, {len(self.estimates[0].names)} integrands: {counts})\n"
            f"  worth {times(middle)} times as many draws ({times(low)} to {times(high)})"
        )
