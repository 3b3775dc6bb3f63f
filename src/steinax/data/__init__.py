"""Samples of draws and scores, coordinates for them, and integrands evaluated on them."""

from ._coordinates import (
    DRAWS_PER_DIM as DRAWS_PER_DIM,
    DRAWS_PER_SCORE as DRAWS_PER_SCORE,
    AffineMap,
    FunnelMap,
    autocorrelation_of as autocorrelation_of,
    check_moves as check_moves,
    covariance_of as covariance_of,
    find_funnel,
    fresh_points as fresh_points,
    kept_training as kept_training,
    spread_of as spread_of,
    stacked as stacked,
    stacked_weights as stacked_weights,
    standardise,
    training_note as training_note,
    training_size as training_size,
    with_warmup,
)
from ._functions import refuse_graph as refuse_graph
from ._integrands import (
    LIMITS as LIMITS,
    IntegrandColumns as IntegrandColumns,
    Integrands,
    IntegrandSpec,
    discrete as discrete,
    exceeding as exceeding,
    integrand_columns as integrand_columns,
    integrands,
    without_rounding as without_rounding,
)
from ._jumps import Link as Link, Step as Step, links as links
from ._sample import (
    ADAPTERS as ADAPTERS,
    AbstractSpace,
    Sample,
    as_chains as as_chains,
    as_log_density as as_log_density,
    as_names as as_names,
    as_reals as as_reals,
    check_sample as check_sample,
    has_families as has_families,
    kish_size as kish_size,
    on_the_reals as on_the_reals,
    places as places,
    refuse_space as refuse_space,
    space_families as space_families,
    space_family as space_family,
)
from ._stream import (
    LazySample as LazySample,
    Stream,
    compiled as compiled,
    lazy_sample as lazy_sample,
    variables_asked as variables_asked,
)
from ._variables import (
    AXES as AXES,
    ByName as ByName,
    Variables,
    as_dataset as as_dataset,
    element as element,
    in_chains as in_chains,
    labels as labels,
    shape_of as shape_of,
    vectors_of as vectors_of,
)
from ._weights import gather_chains, pareto_smoothed, refuse_weights as refuse_weights

__all__ = [
    "AbstractSpace",
    "AffineMap",
    "FunnelMap",
    "IntegrandSpec",
    "Integrands",
    "Sample",
    "Stream",
    "Variables",
    "find_funnel",
    "gather_chains",
    "integrands",
    "pareto_smoothed",
    "standardise",
    "with_warmup",
]
