"""Several related posteriors of few draws each: what one fit learns serves the others."""

from ._fit import CoupledFit, fit_related
from ._meta import MetaNetwork, Settings, meta_learn
from ._related import estimate_related
from ._result import Related

__all__ = [
    "CoupledFit",
    "MetaNetwork",
    "Related",
    "Settings",
    "estimate_related",
    "fit_related",
    "meta_learn",
]
