from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._types import AnyArray, Chains
from ..chains._importance import shares
from ._columns import choices
from ._identities import Weights
from ._integrity import listed

Names = tuple[str, ...]
MOST_CHAINS = 100  # among which swapped ones are looked for


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
        f"the scores of chains {moved} belong to other chains: the log density and the identities agree with "
        f"scores[{[int(i) for i in place]}]. Give draws and scores with their chains in one order."
    )
    yield Repair("chains", draws, scores[place], message)


def jacobian(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """The derivative of the log Jacobian left out, of exp (1) or of the sigmoid (1 - 2 sigmoid)."""
    with np.errstate(over="ignore"):
        sigmoid = 1.0 / (1.0 + np.exp(-draws))
    options = [scores, scores + 1.0, scores + 1.0 - 2.0 * sigmoid]
    for chosen in choices(
        [(draws, option) for option in options], np.ones((3, 1), dtype=bool), weights
    ):
        logs, logits = _named(names, chosen == 1), _named(names, chosen == 2)
        fixes = [f"add 1 to the scores of {listed(logs)} (a log transform)"] * bool(logs)
        fixes += [f"add 1 - 2 sigmoid(draws) to those of {listed(logits)} (logit)"] * bool(logits)
        message = (
            "the scores lack the Jacobian of a transformed parameter: the identities hold with it. "
            f"Differentiate the log density of the unconstrained parameters, or {' and '.join(fixes)}."
        )
        columns = (*logs, *logits)
        mended = np.choose(chosen, options)
        yield Repair("jacobian", draws, mended, message, columns, len(columns))


def constrained(
    draws: Chains, scores: Chains, names: Names, weights: Weights = None
) -> Iterator[Repair]:
    """Positive draws, or draws between 0 and 1, beside scores of their logs or logits."""
    positive = (draws > 0).all(axis=(0, 1))
    within = positive & (draws < 1).all(axis=(0, 1))
    logs = np.log(np.where(positive, draws, 1.0))
    logits = np.where(within, logs - np.log1p(-np.where(within, draws, 0.5)), 0.0)
    options = [draws, logs, logits]
    allowed = np.stack([np.ones_like(positive), positive, within])
    for chosen in choices([(option, scores) for option in options], allowed, weights):
        columns = _named(names, chosen > 0)
        sorts = (("log", chosen == 1), ("logit", chosen == 2))
        fixes = [f"the {word} of {listed(_named(names, on))}" for word, on in sorts if on.any()]
        message = (
            f"the draws of {listed(columns)} are constrained and their scores are those of the "
            f"unconstrained parameters: the identities hold for {' and '.join(fixes)}. Give the "
            "unconstrained draws, and transform back inside the integrands."
        )
        mended = np.choose(chosen, options)
        yield Repair("constrained", mended, scores, message, columns, len(columns))


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


def _named(names: Names, mask: AnyArray) -> Names:
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)
