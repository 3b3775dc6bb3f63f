"""The models that are sampled, a row each."""

from . import equations, hierarchies, mixtures, regressions, time_series
from ._model import Model

MODELS: dict[str, Model] = {
    model.name: model
    for module in (hierarchies, time_series, regressions, mixtures, equations)
    for model in module.MODELS
}
