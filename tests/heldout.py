"""How much variance a control variate leaves on fresh draws, for integrands that no family spans."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import steinax as sx
import targets

FRESH = 20_000
CELLS = ((1000, 10), (4000, 10), (1000, 61))  # draws fitted to, dimensions
FAMILIES: dict[str, Callable[[], sx.families.AbstractFamily]] = {
    "Polynomial": partial(sx.Polynomial, 2),
    "KernelTranslates": sx.KernelTranslates,
}

# In the span of neither family under any target here.
FUNCTIONS = {
    "sine": lambda x: jnp.sin(x[0] + x[1]),
    "exponential": lambda x: jnp.exp(x[0] / 2),
    "cubic": lambda x: x[0] ** 2 * x[1] + x[2] ** 3,
    "bump": lambda x: 1 / (1 + x[0] ** 2),
    "wave": lambda x: jnp.tanh(jnp.sum(x) / x.shape[0] ** 0.5),
    "norm": jnp.linalg.norm,
}


def integrands(target: targets.Target) -> dict[str, Callable]:
    """Those above and the target's first two: equally many for every target."""
    own = list(target.functions.items())[:2]
    return FUNCTIONS | {f"the target's {name}": f for name, f in own}


class Fresh:
    """New draws of a target, and the values of integrands there."""

    def __init__(self, target: targets.Target, functions: dict[str, Callable], seed: int):
        self.x = target.draw(np.random.default_rng((seed, 1)), FRESH)
        self.score = target.score(self.x)
        self.f = sx.data.integrands(functions, sx.Sample(self.x, self.score)).values[0]

    @property
    def plain(self) -> np.ndarray:
        """The variance of each integrand."""
        return self.f.var(axis=0)

    def left(self, control: sx.ControlVariate) -> np.ndarray:
        """The variance of each integrand that the control variate leaves."""
        return (self.f - control(self.x, self.score)).var(axis=0)


def excess(
    target: targets.Target, family: sx.families.AbstractFamily, m: int, seed: int
) -> dict[str, float]:
    """Held-out variance after `Stochastic()` over that after `Exact()`, by integrand.

    Where the exact fit leaves nothing (1e-12 of the variance) the stochastic one must leave next to
    nothing (1e-10): the share that it leaves is then given in units of that.
    """
    functions = integrands(target)
    sample, fresh = target.sample(seed, length=m // 4), Fresh(target, functions, seed)
    exact = fresh.left(sx.fit(functions, sample, family, solver=sx.Exact()))
    key = jax.random.key(seed)
    ours = fresh.left(sx.fit(functions, sample, family, solver=sx.Stochastic(), key=key))
    spanned = exact < 1e-12 * fresh.plain
    ratio = np.where(spanned, ours / fresh.plain / 1e-10, ours / exact)
    return dict(zip(functions, ratio.tolist(), strict=True))
