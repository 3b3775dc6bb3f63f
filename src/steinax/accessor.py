"""The accessor `.steinax` of DataTrees that hold scores: `import steinax.accessor` registers it.

It has a separate import because it needs xarray, which `import steinax` does not.
"""

from typing import TYPE_CHECKING, Any

import xarray

from .adapters import from_arviz
from .auditing import AuditReport, audit as audit_sample
from .data import IntegrandSpec, Sample
from .estimation import Estimate, WeightedDraws, estimate as estimate_sample, weigh as weigh_sample
from .families import AbstractFamily
from .summarising import summary as summarise

if TYPE_CHECKING:
    import pandas
    import rich.table


@xarray.register_datatree_accessor("steinax")
class SteinaxAccessor:
    """Methods of a DataTree in which a sampler, or `save`, stored draws and scores.

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
        """Read the draws and scores, without an audit: the other methods run it."""
        return from_arviz(self._tree, audit=False)

    def audit(self) -> AuditReport:
        """Check that the scores belong to the draws: see `steinax.audit`."""
        return audit_sample(self.sample())

    def estimate(
        self, f: IntegrandSpec, family: AbstractFamily | None = None, **options: Any
    ) -> Estimate:
        """Estimate expectations: see `steinax.estimate`.

        Args:
            f: the integrands.
            family: of control variates; chosen from the draws by default.
            options: those of `steinax.estimate`.
        """
        return estimate_sample(f, self.sample(), family, **options)

    def weigh(self, *arguments: Any, **options: Any) -> WeightedDraws:
        """Weight the draws: see `steinax.weigh` for the arguments."""
        return weigh_sample(self.sample(), *arguments, **options)

    def summary(
        self, var_names: str | list[str] | None = None, **options: Any
    ) -> "pandas.DataFrame | xarray.Dataset | rich.table.Table":
        """Summarise all parameters in a table: see `steinax.summary`.

        Args:
            var_names: which variables, all by default.
            options: those of `steinax.summary`.
        """
        return summarise(self._tree, var_names, **options)


__all__ = ["SteinaxAccessor"]
