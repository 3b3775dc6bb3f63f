from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._precision import precision
from .._types import AnyArray
from ..auditing import AuditError
from ..estimation import AbstractSplit, AuditMode, Estimate
from ..families import AbstractFamily
from ..objectives import AbstractPenalty
from ..solvers import AbstractSolver
from ._methods import LOG_LIKELIHOOD, AbstractMethod, Contribution, SteppingStones
from ._pooled import Options, controlled
from ._quadrature import quadrature_error
from ._result import Evidence
from ._shares import moved, nothing, summed
from ._tempered import Tempered

SHARE = "share"  # the linear part of what a temperature adds


def evidence(
    tempered: Tempered,
    family: AbstractFamily | None = None,
    *,
    method: AbstractMethod = SteppingStones(),
    split: AbstractSplit | None = None,
    penalty: AbstractPenalty | None = None,
    solver: AbstractSolver | None = None,
    neighbours: int = 0,
    quick: bool = False,
    exchanged: bool = False,
    audit: AuditMode = "raise",
) -> Evidence:
    r"""The log evidence $\log Z = \log \int p(x) L(x)\, dx$, with control variates at every temperature.

    A method makes $\log Z = \sum_j \varphi_j(\mathbb{E}_{t_j}[f_1], \mathbb{E}_{t_j}[f_2], \ldots)$ of
    expectations at the temperatures. The linear part of each $\varphi_j$ is one more integrand, so the
    standard error of a share knows how the errors of its expectations hang together.

    Args:
        tempered: draws from the prior to the posterior, with log likelihoods and scores.
        family: of control variates, one for all temperatures; chosen from the draws by default.
        method: `SteppingStones()` by default; `ThermodynamicIntegration()` and `Trapezium()` are others.
        split: as in `estimate`, with a family.
        penalty: as in `estimate`, with a family.
        solver: as in `estimate`, with a family.
        neighbours: how many temperatures on each side lend their draws to the fit, with a family: each
            control variate is then fitted to more draws than are averaged.
        quick: as in `estimate`: whether to try polynomials alone.
        exchanged: whether the chains exchanged states, as those of parallel tempering do: their errors
            then hang together, and the standard error comes from batches of draws that were made at
            the same time. Otherwise the temperatures are taken to be independent.
        audit: as in `estimate`, at each temperature.

    >>> import numpy as np, steinax as sx
    >>> t = np.linspace(0, 1, 9)  # prior and likelihood are standard normal: Z is 1 / sqrt(4 pi)
    >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
    >>> log_likelihood = -(x[..., 0] ** 2) / 2 - np.log(2 * np.pi) / 2
    >>> found = sx.evidence(sx.Tempered(x, log_likelihood, -x, -x, t), sx.Polynomial(4))
    >>> bool(abs(found.value + np.log(4 * np.pi) / 2) < 1e-4)
    True
    """
    options = Options(split, penalty, solver, quick, audit, neighbours)
    steps = np.r_[0.0, np.diff(tempered.temperatures), 0.0]
    terms = [
        method.contribution(values, *map(float, steps[place : place + 2]))
        for place, values in enumerate(tempered.log_likelihood)
    ]
    made = [_at(tempered, place, family, one, options) for place, one in enumerate(terms)]
    log_likelihood = [one.estimate[LOG_LIKELIHOOD] for one in made]
    quadrature = quadrature_error(tempered, method, [one.means for one in made])
    shares = [one.share for one in made]
    return summed(tempered.temperatures, shares, log_likelihood, exchanged, quadrature, method)


class Made(NamedTuple):
    """What one temperature gave."""

    estimate: Estimate
    share: Estimate
    means: AnyArray  # of the integrands of the method, with control variates


def _at(
    tempered: Tempered,
    place: int,
    family: AbstractFamily | None,
    terms: Contribution,
    options: Options,
) -> Made:
    """The expectations at one temperature, and its share of the log evidence."""
    values = tempered.log_likelihood[place]
    own = terms.integrands(values)
    plain = np.array([np.mean(one) for one in own.values()])
    value, slope = _linear(terms, plain)

    def f(values: AnyArray) -> dict[str, AnyArray]:
        found = terms.integrands(values)
        if not found:  # the last of the stepping stones has nothing to add
            return {LOG_LIKELIHOOD: values}
        centred = np.stack(list(found.values()), axis=-1) - plain
        return {LOG_LIKELIHOOD: values, **found, SHARE: centred @ slope}

    try:
        found = controlled(tempered, place, f, family, options)
    except AuditError as error:
        error.add_note(f"This is at inverse temperature {tempered.temperatures[place]:g}.")
        raise
    means = np.array([found[name].value for name in own])
    if not own:
        return Made(found, nothing(found[LOG_LIKELIHOOD]), means)
    with precision(np.float64), np.errstate(invalid="ignore", divide="ignore"):
        bend = float(terms.share(jnp.asarray(means)) - value - slope @ (means - plain))
    return Made(found, moved(found[SHARE], value, bend), means)


def _linear(terms: Contribution, plain: np.ndarray) -> tuple[float, np.ndarray]:
    """The share at the plain means, and its gradient there."""
    with precision(np.float64):
        value, slope = jax.value_and_grad(terms.share)(jnp.asarray(plain, jnp.float64))
    return float(value), np.asarray(slope)
