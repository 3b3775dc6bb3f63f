from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import AnyArray, Chains
from ..data import Sample
from ._differences import differences
from ._energies import comparable, energies
from ._identities import Identities, chain_identities, identities, tested
from ._integrity import integrity
from ._naming import name_chain, name_mistake
from ._report import AuditReport, Finding

LEAST = 20  # draws; with fewer no identity can be tested
LEAST_LENGTH = 8


def audit(sample: Sample, *, log_density: Callable[[AnyArray], Any] | None = None) -> AuditReport:
    r"""Test whether the scores are those of the draws, and whether the chains are in order.

    If the scores $s$ are the gradients of the log density of the draws $x$, then $E[s_j] = 0$ and
    $E[x_i s_j] = -1_{i = j}$. On standardised draws, with errors that know of autocorrelation, these
    and two more functions of each dimension are tested. Right scores are refused once in 12,500
    audits by design and less than once in 1,000 as measured, heavy tails and short chains included.
    When an identity fails, each common mistake is repaired in turn (sign, lag, order of columns or chains,
    Jacobian, constrained draws, temperature), and the repair that makes all identities hold is named.

    If the sample has log densities, the scores are compared with their differences between near draws,
    $\log\pi(x_i) - \log\pi(x_j) \approx \tfrac12 (s_i + s_j) \cdot (x_i - x_j)$. That finds a missing prior
    or Jacobian, a temperature, other data and scores of other draws where the identities are too weak to.

    Where draws have importance weights, all expectations are weighted ones, and a heavy tail of the
    weights is a finding: a remark if $\hat k$ is above 0.7, fatal above 1.

    Passing is not proof: the report's `limit` says how large an error could hide, and neither missed
    modes nor chains that have not converged show in these identities.

    Args:
        sample: draws and scores.
        log_density: the log density itself, if it is at hand: a function of one draw, in NumPy or jax, up to
            a constant. The scores are compared with its finite differences at five draws.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sx.audit(sx.Sample(x, -2 * x)).problems[0].kind
    'tempered'
    """
    problems = list(integrity(sample))
    kinds = {problem.kind for problem in problems}
    diverging = None if sample.diverging is None else int(np.sum(sample.diverging))
    nothing = np.full(sample.dim, np.inf)
    if sample.size < LEAST or sample.length < LEAST_LENGTH or kinds & {"constant", "repeated"}:
        if not kinds & {"constant", "repeated"}:
            problems.append(_short(sample))
        return AuditReport(tuple(problems), 0, nothing, nothing, 0.0, diverging)
    draws = np.asarray(sample.draws, dtype=np.float64)
    scores = np.asarray(sample.scores, dtype=np.float64)
    with np.errstate(all="ignore"):  # what overflows is not a number, and fails
        if sample.space is None:
            found = identities(draws, scores, sample.weights)
            means, squares = found.limit
        else:  # where no limit is known, and no mistake by name
            own = sample.space.identities(draws, scores)
            found = tested([own], sample.dim, sample.weights)
            means, squares = nothing, nothing
        if not found.hold and sample.space is not None:
            problems.insert(0, _unnamed(sample))
        elif sample.space is None:
            wrong = _wrong_scores(sample, draws, scores, found, apart="stuck" not in kinds)
            problems[:0] = [] if wrong is None else [wrong]
    if log_density is not None and (finding := differences(sample, log_density)):
        problems.insert(0, finding)
    strength = float(found.strength.max())
    compared = log_density is not None or (sample.space is None and comparable(sample))
    checked = found.strength.size
    return AuditReport(tuple(problems), checked, means, squares, strength, diverging, compared)


def _wrong_scores(
    sample: Sample, draws: Chains, scores: Chains, found: Identities, apart: bool
) -> Finding | None:
    """What the log densities, the identities of all chains or those of each say against the scores.

    Args:
        sample: the draws and scores.
        draws: the same in float64.
        scores: the same.
        found: the identities of all chains.
        apart: whether to look at single chains.
    """
    if comparable(sample) and (told := energies(sample)):
        return told
    if not found.hold:
        return name_mistake(draws, scores, sample.names, found, sample.weights)
    if apart and sample.chains > 1:
        strength = chain_identities(draws, scores, sample.weights)
        if not (strength <= 1.0).all():
            return name_chain(draws, scores, sample.names, strength, sample.weights)
    return None


def _unnamed(sample: Sample) -> Finding:
    """The scores do not belong to the draws in a space where no mistake is known by name."""
    message = (
        f"the scores are not those of the draws on {sample.space!r}: its Stein identities fail. Check that "
        "scores and draws are in the same order and that the space is the right one; see steinax.spaces."
    )
    return Finding("scores", message)


def _short(sample: Sample) -> Finding:
    message = (
        f"{sample.chains} x {sample.length} draws are too few to test the scores: give at least "
        f"{LEAST_LENGTH} in each chain and {LEAST} in all."
    )
    if sample.chains > LEAST:
        message += (
            f" If there are {sample.length} chains of {sample.chains} draws, give (chain, draw, dim): "
            "draws.swapaxes(0, 1)."
        )
    return Finding("short", message, fatal=False)
