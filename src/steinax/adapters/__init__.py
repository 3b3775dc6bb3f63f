"""Convert the output of samplers, and files, to a Sample; each package is imported when it is needed."""

from ._arrays import density_and_score as density_and_score, from_arrays, from_logdensity
from ._blackjax import from_blackjax
from ._bridgestan import from_bridgestan
from ._cmdstan import cmdstan_length as cmdstan_length, from_cmdstan
from ._numpyro import from_numpyro
from ._nutpie import from_nutpie, nutpie_length as nutpie_length
from ._pymc import from_pymc
from ._pystan import from_pystan
from ._pytrees import over_draws as over_draws
from ._recorder import Recorder as Recorder, record
from ._stored import (
    COLUMN as COLUMN,
    DRAWS as DRAWS,
    LOG_DENSITY as LOG_DENSITY,
    ORDER as ORDER,
    SCORES as SCORES,
    STATS as STATS,
    TRAINING as TRAINING,
    VERIFIED as VERIFIED,
    from_arviz,
    from_zarr,
)
from ._training import NoDrawsError as NoDrawsError, UnfinishedError as UnfinishedError

__all__ = [
    "from_arrays",
    "from_arviz",
    "from_blackjax",
    "from_bridgestan",
    "from_cmdstan",
    "from_logdensity",
    "from_numpyro",
    "from_nutpie",
    "from_pymc",
    "from_pystan",
    "from_zarr",
    "record",
]
