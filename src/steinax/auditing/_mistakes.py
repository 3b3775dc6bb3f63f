"""Common mistakes in scores: what repairs each of them, and the words that name it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .._show import listed
from .._types import AnyArray, Chains
from ..chains import linearised
from ..chains._statistics import shares
from ._identities import (
    Identities,
    Weights,
    chain_identities,
    identities,
    means_and_errors,
    own_identities,
    standardised,
)
from ._report import Finding, named


def name_mistake(
    draws: Chains,
    scores: Chains,
    names: tuple[str, ...],
    found: Identities,
    weights: Weights = None,
) -> Finding:
    """The mistake whose repair makes the identities hold, the best one where several do."""
    for stage in STAGES:
        tried = [repair for propose in stage for repair in propose(draws, scores, names, weights)]
        mended = [
            identities(one.draws, one.scores, None if weights is None else weights[:, one.kept])
            for one in tried
        ]
        holding = [
            (after.misfit + 2.0 * repair.fitted, place)
            for place, (repair, after) in enumerate(zip(tried, mended, strict=True))
            if after.hold
        ]
        if holding:
            best = tried[min(holding)[1]]
            if best.kind == "tempered" and _walls(draws).any():
                break  # a truncated normal has the scores of a narrower one, but for its ends
            return Finding(best.kind, best.message, columns=best.columns)
    return _unnamed(draws, names, found)


def name_chain(
    draws: Chains,
    scores: Chains,
    names: tuple[str, ...],
    strength: AnyArray,
    weights: Weights = None,
) -> Finding:
    """The mistake in the scores of single chains, where those of all together pass.

    Args:
        draws: of all chains.
        scores: the same.
        names: of the dimensions.
        strength: the largest deviation of each chain, in units of the allowed one.
        weights: of the draws, where they have some.
    """
    for repair in swapped(draws, scores, names, weights):
        if (chain_identities(repair.draws, repair.scores, weights) <= 1.0).all():
            return Finding(repair.kind, repair.message)
    chain = int(np.nan_to_num(strength, nan=np.inf).argmax())
    rows = slice(chain, chain + 1)
    some = None if weights is None else weights[rows]
    found = identities(draws[rows], scores[rows], some)
    mistake = name_mistake(draws[rows], scores[rows], names, found, some)
    return replace(mistake, message=f"chain {chain} alone fails: {mistake.message}")


def _unnamed(draws: Chains, names: tuple[str, ...], found: Identities) -> Finding:
    worst = int(np.nan_to_num(found.strength, nan=np.inf).argmax())
    message = (
        "the scores are not the gradients of the log density of these draws: "
        f"{int(np.sum(~(found.strength <= 1)))} of {found.strength.size} identities fail, the worst "
        f"that of {found.label(worst, names)}, off by {found.deviation[worst]:.2g} where "
        f"{found.allowed[worst]:.2g} is allowed. "
    )
    walls = _walls(draws)
    if walls.any():
        columns = named(names, walls)
        message += (
            f"The draws of {listed(columns)} crowd at an end of their range: where a density does not "
            "vanish at the boundary of its support the identities do not hold. Transform them to the "
            "whole line, with the Jacobian in the scores, or say where they live: "
            "Sample(..., space=steinax.spaces.Box(lower, upper)), with -np.inf or np.inf where there is no "
            "bound."
        )
        return Finding("boundary", message, columns=columns)
    message += (
        "No repair of a common mistake makes them hold. Look for a term left out, such as a prior; for "
        "another model or other data; for a parameter with a boundary; or for chains that have not "
        "converged. steinax.audit(sample, log_density=...) compares the scores with finite differences. "
        'For an unadjusted sampler this is expected: give audit="unadjusted" to estimate.'
    )
    return Finding("scores", message)


def _walls(draws: Chains) -> AnyArray:
    """Which dimensions crowd at their smallest or largest draw, as beside a boundary."""
    low, five, middle, ninety, high = np.quantile(draws, [0, 0.05, 0.5, 0.95, 1], axis=(0, 1))
    return ((five - low) < WALL * (middle - low)) | ((high - ninety) < WALL * (high - middle))


Names = tuple[str, ...]
MOST_CHAINS = 100  # among which swapped ones are looked for
EVIDENCE = (10.0, 3.0)  # by so much must chi squared fall for a column to be thought changed
WALL = 0.2  # a twentieth of the draws within this part of the way from the end to the median


@dataclass(frozen=True)
class Repair:
    """Draws and scores as they would be without one mistake, and the words that name it."""

    kind: str
    draws: Chains
    scores: Chains
    message: str
    columns: Names = ()
    fitted: int = 0  # how many things were fitted to find it
    kept: slice = slice(None)  # the draws of every chain that are left


type Proposal = Callable[[Chains, Chains, Names, Weights], Iterator[Repair]]


def sign(draws: Chains, scores: Chains, names: Names, weights: Weights = None) -> Iterator[Repair]:
    """The gradient of minus the log density."""
    message = (
        "the scores have the wrong sign: the identities hold for -scores. A score is the gradient of "
        "the log density, not of the potential or the loss: give -scores."
    )
    yield Repair("sign", draws, -scores, message)


def lag(draws: Chains, scores: Chains, names: Names, weights: Weights = None) -> Iterator[Repair]:
    """Scores of the draw before or after: right ones are the most aligned with their draws."""
    now, first, last = alignment(draws, scores, weights), slice(None, -1), slice(1, None)
    for word, kept, moved, slices in (
        ("late", first, last, "draws[:, :-1] with scores[:, 1:]"),
        ("early", last, first, "draws[:, 1:] with scores[:, :-1]"),
    ):
        x, s, own = draws[:, kept], scores[:, moved], None if weights is None else weights[:, kept]
        if alignment(x, s, own) > now:
            message = (
                f"the scores are one draw {word}: the identities hold when they are shifted by one "
                f"within each chain. Save the gradient at the draw itself, or give {slices}."
            )
            yield Repair("lag", x, s, message, kept=kept)


def order(draws: Chains, scores: Chains, names: Names, weights: Weights = None) -> Iterator[Repair]:
    """Columns of the scores in another order: assign each to the dimension it opposes most."""
    from scipy.optimize import linear_sum_assignment

    x, s = _standard(draws, weights), _standard(scores, weights)
    _, found = linear_sum_assignment(x.T @ s)
    moved = np.flatnonzero(found != np.arange(len(found)))
    if len(moved) == 0:
        return
    columns = tuple(names[i] for i in moved)
    message = (
        f"the columns of the scores are in another order than those of the draws ({listed(columns)}): "
        f"the identities hold for scores[..., {[int(i) for i in found]}]. Give both in one order; "
        "flattening a dictionary sorts its names, and a sampler may not."
    )
    yield Repair("order", draws, scores[..., found], message, columns)


def swapped(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """Scores of other chains: assign each chain of scores to the draws that it opposes most."""
    from scipy.optimize import linear_sum_assignment

    chains = len(draws)
    if not 1 < chains <= MOST_CHAINS:
        return
    x, s = (_standard(one, weights).reshape(chains, -1) for one in (draws, scores))
    _, place = linear_sum_assignment(x @ s.T)
    if (place == np.arange(chains)).all():
        return
    moved = ", ".join(str(i) for i in np.flatnonzero(place != np.arange(chains)))
    message = (
        f"the scores of chains {moved} belong to other chains: they fit as "
        f"scores[{[int(i) for i in place]}]. Give draws and scores with their chains in one order."
    )
    yield Repair("chains", draws, scores[place], message)


def jacobian(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """The derivative of the log Jacobian left out, of exp (1) or of the sigmoid (1 - 2 sigmoid)."""
    log, logit, _ = jacobian_terms(draws)
    options = [scores, scores + log, scores + logit]
    for chosen in choices(
        [(draws, option) for option in options], np.ones((3, 1), dtype=bool), weights
    ):
        logs, logits = named(names, chosen == 1), named(names, chosen == 2)
        fixes = [f"add 1 to the scores of {listed(logs)} (a log transform)"] * bool(logs)
        fixes += [f"add 1 - 2 sigmoid(draws) to those of {listed(logits)} (logit)"] * bool(logits)
        message = lacks_jacobian("", "the identities hold with it", " and ".join(fixes))
        columns = (*logs, *logits)
        mended = np.choose(chosen, options)
        yield Repair("jacobian", draws, mended, message, columns, len(columns))


def constrained(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """Positive draws, or draws between 0 and 1, beside scores of their logs or logits."""
    (positive, logs), (within, logits) = unconstrained(draws)
    options = [draws, logs, logits]
    allowed = np.stack([np.ones_like(positive), positive, within])
    for chosen in choices([(option, scores) for option in options], allowed, weights):
        columns = named(names, chosen > 0)
        sorts = (("log", chosen == 1), ("logit", chosen == 2))
        fixes = [f"the {word} of {listed(named(names, on))}" for word, on in sorts if on.any()]
        message = are_constrained(columns, f"the identities hold for {' and '.join(fixes)}")
        mended = np.choose(chosen, options)
        yield Repair("constrained", mended, scores, message, columns, len(columns))


def jacobian_terms(draws: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The derivatives of the log Jacobian of exp, of the sigmoid and of tanh at unconstrained draws."""
    with np.errstate(over="ignore"):
        sigmoid = 1.0 / (1.0 + np.exp(-draws))
    return np.ones_like(draws), 1.0 - 2.0 * sigmoid, -2.0 * np.tanh(draws)


def lacks_jacobian(of: str, evidence: str, fix: str) -> str:
    """The message for scores without a Jacobian."""
    return (
        f"the scores{of} lack the Jacobian of a transformed parameter: {evidence}. Differentiate the log "
        f"density of the unconstrained parameters, or {fix}."
    )


def unconstrained(draws: Chains) -> tuple[tuple[AnyArray, AnyArray], tuple[AnyArray, AnyArray]]:
    """For logs and for logits: which columns have them, (dim,), and their values there."""
    positive = (draws > 0).all(axis=(0, 1))
    within = positive & (draws < 1).all(axis=(0, 1))
    logs = np.log(np.where(positive, draws, 1.0))
    logits = np.where(within, logs - np.log1p(-np.where(within, draws, 0.5)), 0.0)
    return (positive, logs), (within, logits)


def are_constrained(columns: Names, evidence: str) -> str:
    """The message for constrained draws beside unconstrained scores."""
    return (
        f"the draws of {listed(columns)} are constrained and their scores are those of the unconstrained "
        f"parameters: {evidence}. Give the unconstrained draws, and transform back inside the integrands."
    )


def tempered(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """All scores too large or too small by one factor."""
    beta = alignment(draws, scores, weights)
    if beta < 0.01:
        return
    message = (
        f"the scores are {beta:.2g} times those of the draws' density, as of a tempered one: the "
        f"identities hold for scores / {beta:.3g}. Look for a temperature, a likelihood counted "
        "twice, or a minibatch gradient without its factor N / batch. Draws of a sampler without a "
        'Metropolis step look like this too: for them use estimate(..., audit="unadjusted").'
    )
    yield Repair("tempered", draws, scores / beta, message, fitted=1)


# Repairs that fit nothing come first: a lag looks like half the size when draws correlate by a half.
STAGES: tuple[tuple[Proposal, ...], ...] = (
    (sign, lag, order, swapped),
    (jacobian, constrained, tempered),
)


def alignment(draws: Chains, scores: Chains, weights: Weights = None) -> float:
    """The mean over dimensions of -E[x_i s_i], which is 1 for right scores."""
    share = shares(weights)
    x = draws - (share * draws).mean(axis=(0, 1))
    return -float((share * x * scores).mean(axis=(0, 1)).mean())


def _standard(chains: Chains, weights: Weights) -> AnyArray:
    """Columns of mean 0 and size 1, each row times the root of its weight: (n, dim)."""
    flat = chains.reshape(-1, chains.shape[2])
    share = shares(None if weights is None else weights.ravel())
    centred = np.sqrt(share) * (flat - (share * flat).mean(axis=0))
    return centred / np.maximum(np.linalg.norm(centred, axis=0), np.finfo(np.float64).tiny)


def choices(
    options: list[tuple[Chains, Chains]], allowed: AnyArray, weights: Weights = None
) -> Iterator[AnyArray]:
    """Which of several draws and scores each dimension needs: (dim,) of option numbers.

    The first option stands in doubt; little doubt is allowed first, then more. A mistake in one
    column does not change the own identities of another, so each is decided alone.

    Args:
        options: draws and scores of all dimensions, the given ones first.
        allowed: which options are open to which dimension, (option, dim) or (option, 1).
        weights: of the draws, where they have some.
    """
    each = np.stack([_misfit(*option, weights) for option in options])
    misfit = np.where(allowed, each, np.inf)
    best, gain = misfit.argmin(axis=0), misfit[0] - misfit.min(axis=0)
    before = np.zeros_like(best)
    for evidence in EVIDENCE:
        chosen = np.where(gain > evidence, best, 0)
        if (chosen != before).any():
            yield chosen
        before = chosen


def _misfit(draws: Chains, scores: Chains, weights: Weights) -> AnyArray:
    """Chi squared of each dimension's own identities: (dim,)."""
    moves = np.ptp(draws, axis=(0, 1)) > 0
    y, scale = standardised(np.where(moves, draws, np.arange(draws.shape[1])[:, None]), weights)
    series = np.concatenate(own_identities(y, scores * scale), axis=2)
    found = means_and_errors(linearised(series, weights))
    chi = (found.mean / np.maximum(found.error, np.finfo(np.float64).tiny)) ** 2
    return np.where(moves, chi.reshape(4, -1).sum(axis=0), np.inf)
