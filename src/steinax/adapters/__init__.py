"""From what a sampler returns, or a file holds, to a Sample; each package is imported when it is needed."""

from ._arrays import from_arrays
from ._blackjax import from_blackjax
from ._bridgestan import from_bridgestan
from ._cmdstan import from_cmdstan
from ._logdensity import from_logdensity
from ._numpyro import from_numpyro
from ._nutpie import from_nutpie
from ._pymc import from_pymc
from ._pystan import from_pystan
from ._stored import from_arviz, from_zarr

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
]
