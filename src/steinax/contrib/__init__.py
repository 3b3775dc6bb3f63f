"""Methods beyond the core, built only on the public names of steinax."""

from .diffusion import Diffusion, GrowingMatrix
from .meta import MetaNetwork, Settings, meta_learn
from .related import CoupledFit, Related, estimate_related, fit_related

__all__ = [
    "CoupledFit",
    "Diffusion",
    "GrowingMatrix",
    "MetaNetwork",
    "Related",
    "Settings",
    "estimate_related",
    "fit_related",
    "meta_learn",
]
