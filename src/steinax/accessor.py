"""The accessor `.steinax` of DataTrees that hold scores: `import steinax.accessor` registers it.

It is registered by an import of its own because it needs xarray, which `import steinax` does without.
"""

from typing import TYPE_CHECKING, Any

import xarray

from .adapters import from_arviz
from .auditing import AuditReport
from .auditing import audit as audit_sample
from .data import Sample
from .data._integrands import IntegrandSpec
from .estimation import Estimate, WeightedDraws
from .estimation import estimate as estimate_sample
from .estimation import weigh as weigh_sample
from .families import AbstractFamily
from .summarising import summary as summarise

if TYPE_CHECKING:
    import pandas
    import rich.table


@xarray.register_datatree_accessor("steinax")
class SteinaxAccessor:
    """What can be done with a DataTree in which a sampler, or `save`, left draws and scores.

    >>> import numpy as np, steinax as sx
    >>> import steinax.accessor
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> tree = sx.to_arviz(sx.Sample(x, -x, ["mu", "nu"]))
    >>> tree.steinax.estimate("mu").names
    ('mu',)
    """

    def __init__(self, tree: xarray.DataTree):
        self._tree = tree

    def sample(self) -> Sample:
        """The draws and scores, not audited yet: everything below does that."""
        return from_arviz(self._tree, audit=False)

    def audit(self) -> AuditReport:
        """Whether the scores are those of the draws: see `steinax.audit`."""
        return audit_sample(self.sample())

    def estimate(
        self, f: IntegrandSpec, family: AbstractFamily | None = None, **options: Any
    ) -> Estimate:
        """Expectations: see `steinax.estimate`.

        Args:
            f: the integrands.
            family: of control variates; chosen from the draws by default.
            options: as `steinax.estimate` has them.
        """
        return estimate_sample(f, self.sample(), family, **options)

    def weigh(self, *arguments: Any, **options: Any) -> WeightedDraws:
        """Draws with weights: see `steinax.weigh`, whose arguments these are."""
        return weigh_sample(self.sample(), *arguments, **options)

    def summary(
        self, var_names: str | list[str] | None = None, **options: Any
    ) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
        """The table of all parameters: see `steinax.summary`.

        Args:
            var_names: which variables, all by default.
            options: as `steinax.summary` has them.
        """
        return summarise(self._tree, var_names, **options)


__all__ = ["SteinaxAccessor"]
