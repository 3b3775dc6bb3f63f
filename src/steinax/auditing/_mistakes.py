"""Common mistakes in scores: the repair of each, and the message that describes it."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .._show import listed
from .._types import AnyArray, Chains
from ..chains import linearised, shares
from ._energies import (
    APART,
    OPPOSED,
    OTHERWISE,
    REPAIRED,
    SHARE,
    Densities,
    Misfit,
    Suspect,
    suspect,
)
from ._identities import (
    ChainWeights,
    Finding,
    Identities,
    Names,
    Repair,
    chain_identities,
    identities,
    means_and_errors,
    named,
    own_identities,
    standardised,
)


def name_mistake(
    draws: Chains,
    scores: Chains,
    names: tuple[str, ...],
    tests: Identities,
    weights: ChainWeights = None,
) -> Finding:
    """Find the mistake whose repair makes the identities hold, the best one if several do."""
    for stage in STAGES:
        candidates = [
            repair for propose in stage for repair in propose(draws, scores, names, weights)
        ]
        repaired = [
            identities(
                repair.draws, repair.scores, None if weights is None else weights[:, repair.kept]
            )
            for repair in candidates
        ]
        holding = [
            (after.misfit + 2.0 * repair.fitted, index)
            for index, (repair, after) in enumerate(zip(candidates, repaired, strict=True))
            if after.hold
        ]
        if holding:
            best = candidates[min(holding)[1]]
            if best.kind == "tempered" and _walls(draws).any():
                break  # truncated normals look like tempered ones, apart from their ends
            return Finding(best.kind, best.message, columns=best.columns)
    return _unnamed(draws, scores, names, tests)


def name_chain(
    draws: Chains,
    scores: Chains,
    names: tuple[str, ...],
    strength: AnyArray,
    weights: ChainWeights = None,
) -> Finding:
    """Find the mistake in the scores of a single chain when the identities of all chains hold.

    Args:
        draws: the draws of all chains.
        scores: their scores.
        names: the names of the dimensions.
        strength: the largest deviation of each chain, in units of the allowed one.
        weights: importance weights of the draws, if any.
    """
    for repair in swapped(draws, scores, names, weights):
        if (chain_identities(repair.draws, repair.scores, weights) <= 1.0).all():
            return Finding(repair.kind, repair.message)
    chain = int(np.nan_to_num(strength, nan=np.inf).argmax())
    rows = slice(chain, chain + 1)
    chain_weights = None if weights is None else weights[rows]
    tests = identities(draws[rows], scores[rows], chain_weights)
    mistake = name_mistake(draws[rows], scores[rows], names, tests, chain_weights)
    return replace(mistake, message=f"chain {chain} alone fails: {mistake.message}")


def _unnamed(draws: Chains, scores: Chains, names: tuple[str, ...], tests: Identities) -> Finding:
    """Report failed identities that no repair of a common mistake explains."""
    worst = int(np.nan_to_num(tests.strength, nan=np.inf).argmax())
    message = (
        "the scores are not the gradients of the log density of these draws: "
        f"{int(np.sum(~(tests.strength <= 1)))} of {tests.strength.size} identities fail, the worst "
        f"that of {tests.label(worst, names)}, which is off by {tests.deviation[worst]:.2g} where "
        f"{tests.allowed[worst]:.2g} is allowed. "
    )
    walls = _walls(draws)
    if walls.any():
        columns = named(names, walls)
        message += (
            f"The draws of {listed(columns)} crowd at an end of their range: where a density does not "
            "vanish at the boundary of its support the identities do not hold. Transform them to the "
            "whole line, with the Jacobian in the scores, or give their space: "
            "Sample(..., space=steinax.spaces.Box(lower, upper)), with -np.inf or np.inf where there is no "
            "bound."
        )
        return Finding("boundary", message, columns=columns)
    if unrelated(draws, scores):
        message += (
            "The scores hardly depend on the draws, so they are probably those of other draws: look for "
            "draws that were thinned, shuffled or cut, and scores that were not. "
        )
    message += (
        "No repair of a common mistake makes them hold. Look for a term left out, such as a prior; for "
        "another model or other data; for a parameter with a boundary; or for chains that have not "
        "converged. steinax.audit(sample, log_density=...) compares the scores with finite differences. "
        'For an unadjusted sampler this is expected: give audit="unadjusted" to estimate.'
    )
    return Finding("scores", message)


def _walls(draws: Chains) -> AnyArray:
    """Mark the dimensions whose draws crowd at their smallest or largest value, as at a boundary."""
    low, five, middle, ninety, high = np.quantile(draws, [0, 0.05, 0.5, 0.95, 1], axis=(0, 1))
    limit = min(WALL, _near_by_chance(draws.shape[0] * draws.shape[1], draws.shape[2]))
    return ((five - low) < limit * (middle - low)) | ((high - ninety) < limit * (high - middle))


def _near_by_chance(n: int, dim: int) -> float:
    r"""Compute how near a twentieth of n draws comes to the last one by chance, relative to the median.

    In a smooth tail the range of $k$ draws is that of $k - 1$ exponential variables: below $r$ with the
    probability $(1 - e^{-r})^{k - 1}$. With its scale and the distance from the median those of a Gaussian,
    the result is so small that it has the probability `CHANCE` at the 2 dim ends together, if every second
    draw of a chain is independent.
    """
    share = (CHANCE / (2 * dim)) ** (1.0 / max(n / 40 - 1, 0.1))
    distance = -np.log1p(-share) / SLOPE
    return float(distance / (distance + FIVE))


RELATED = 4.0  # standard errors of draws times scores, below which they seem to be unrelated
MOST_CHAINS = 100  # largest number of chains among which swapped ones are searched for
EVIDENCE = (
    10.0,
    3.0,
)  # reductions of chi squared for which an option is preferred to the given one
CHANCE = 0.02  # the rate at which draws of a smooth density are taken to crowd at an end
SLOPE, FIVE = (
    1.9,
    1.645,
)  # of a Gaussian's tail at its twentieth, and the distance of that from the median
WALL = (
    0.2  # a twentieth of the draws lies within this fraction of the way from the end to the median
)


type Proposal = Callable[[Chains, Chains, Names, ChainWeights], Iterator[Repair]]


def sign(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose scores of the opposite sign."""
    message = (
        "the scores have the wrong sign: the identities hold for -scores. A score is the gradient of "
        "the log density, not of the potential or the loss: give -scores."
    )
    yield Repair("sign", draws, -scores, message)


def signs(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose scores of the opposite sign for some columns."""
    options = [scores, -scores]
    for chosen in choices(
        [(draws, option) for option in options], np.ones((2, 1), dtype=bool), weights
    ):
        columns = named(names, chosen == 1)
        message = (
            f"the scores of {listed(columns)} have the wrong sign: the identities hold with the opposite "
            "one. Correct the derivative with respect to these columns."
        )
        repaired = np.choose(chosen, options)
        yield Repair("sign", draws, repaired, message, columns, len(columns))


def lag(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose scores shifted by one draw, if that aligns them better with their draws."""
    given_alignment = alignment(draws, scores, weights)
    for repair in shifted(draws, scores):
        kept_weights = None if weights is None else weights[:, repair.kept]
        if alignment(repair.draws, repair.scores, kept_weights) > given_alignment:
            yield repair


def shifted(draws: Chains, scores: Chains) -> Iterator[Repair]:
    """Propose scores of the next and of the previous draw."""
    first, last = slice(None, -1), slice(1, None)
    for word, kept, moved, slices in (
        ("late", first, last, "draws[:, :-1] with scores[:, 1:]"),
        ("early", last, first, "draws[:, 1:] with scores[:, :-1]"),
    ):
        message = (
            f"the scores are one draw {word}: the identities hold when they are shifted by one "
            f"within each chain. Save the gradient at the draw itself, or give {slices}."
        )
        yield Repair("lag", draws[:, kept], scores[:, moved], message, kept=kept)


def order(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose another order of the score columns: each goes to the dimension it opposes most."""
    from scipy.optimize import linear_sum_assignment

    x, s = _standard(draws, weights), _standard(scores, weights)
    _, permutation = linear_sum_assignment(x.T @ s)
    moved = np.flatnonzero(permutation != np.arange(len(permutation)))
    if len(moved) == 0:
        return
    columns = tuple(names[i] for i in moved)
    message = (
        f"the columns of the scores are in another order than those of the draws ({listed(columns)}): "
        f"the identities hold for scores[..., {[int(i) for i in permutation]}]. Give both in the same "
        "order; flattening a dictionary sorts its names, and a sampler may not."
    )
    yield Repair("order", draws, scores[..., permutation], message, columns)


def swapped(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose another order of the score chains: each goes to the draws that it opposes most."""
    from scipy.optimize import linear_sum_assignment

    chains = len(draws)
    if not 1 < chains <= MOST_CHAINS:
        return
    x, s = (_standard(values, weights).reshape(chains, -1) for values in (draws, scores))
    _, permutation = linear_sum_assignment(x @ s.T)
    if (permutation == np.arange(chains)).all():
        return
    moved = ", ".join(str(i) for i in np.flatnonzero(permutation != np.arange(chains)))
    message = (
        f"the scores of chains {moved} belong to other chains: they fit as "
        f"scores[{[int(i) for i in permutation]}]. Give the chains of draws and scores in the same order."
    )
    yield Repair("chains", draws, scores[permutation], message)


def jacobian(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose adding a missing derivative of the log Jacobian, of exp (1) or sigmoid (1 - 2 sigmoid)."""
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
        repaired = np.choose(chosen, options)
        yield Repair("jacobian", draws, repaired, message, columns, len(columns))


def constrained(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose logs of positive draws, or logits of draws in (0, 1), for scores of those."""
    (positive, logs), (within, logits) = unconstrained(draws)
    options = [draws, logs, logits]
    allowed = np.stack([np.ones_like(positive), positive, within])
    for chosen in choices([(option, scores) for option in options], allowed, weights):
        columns = named(names, chosen > 0)
        transforms = (("log", chosen == 1), ("logit", chosen == 2))
        fixes = [
            f"the {word} of {listed(named(names, mask))}" for word, mask in transforms if mask.any()
        ]
        message = are_constrained(columns, f"the identities hold for {' and '.join(fixes)}")
        repaired = np.choose(chosen, options)
        yield Repair("constrained", repaired, scores, message, columns, len(columns))


def jacobian_terms(draws: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Compute the derivatives of the log Jacobians of exp, sigmoid and tanh at unconstrained draws."""
    with np.errstate(over="ignore"):
        sigmoid = 1.0 / (1.0 + np.exp(-draws))
    return np.ones_like(draws), 1.0 - 2.0 * sigmoid, -2.0 * np.tanh(draws)


def lacks_jacobian(of: str, evidence: str, fix: str) -> str:
    """Compose the message for scores that lack a Jacobian."""
    return (
        f"the scores{of} lack the Jacobian of a transformed parameter: {evidence}. Differentiate the log "
        f"density of the unconstrained parameters, or {fix}."
    )


def unconstrained(draws: Chains) -> tuple[tuple[AnyArray, AnyArray], tuple[AnyArray, AnyArray]]:
    """Compute logs and logits of the draws: the columns for which each exists, (dim,), and its values."""
    positive = (draws > 0).all(axis=(0, 1))
    within = positive & (draws < 1).all(axis=(0, 1))
    logs = np.log(np.where(positive, draws, 1.0))
    logits = np.where(within, logs - np.log1p(-np.where(within, draws, 0.5)), 0.0)
    return (positive, logs), (within, logits)


def are_constrained(columns: Names, evidence: str) -> str:
    """Compose the message for constrained draws with unconstrained scores."""
    return (
        f"the draws of {listed(columns)} are constrained and their scores are those of the unconstrained "
        f"parameters: {evidence}. Give the unconstrained draws, and transform back inside the integrands."
    )


def tempered(
    draws: Chains, scores: Chains, names: Names, weights: ChainWeights = None
) -> Iterator[Repair]:
    """Propose dividing all scores by one factor, unless draws and scores seem to be unrelated."""
    if not unrelated(draws, scores, weights):
        yield from divided(draws, scores, alignment(draws, scores, weights))


def divided(draws: Chains, scores: Chains, beta: float) -> Iterator[Repair]:
    """Propose dividing all scores by a factor, if it is positive."""
    if not beta >= 0.01:
        return
    message = (
        f"the scores are {beta:.2g} times those of the draws' density, as if it were tempered: the "
        f"identities hold for scores / {beta:.3g}. Look for a temperature, a likelihood counted "
        "twice or left out, or a minibatch gradient without its factor N / batch. Only if the sampler has no "
        'Metropolis step is this to be expected: for such draws use estimate(..., audit="unadjusted").'
    )
    yield Repair("tempered", draws, scores / beta, message, fitted=1)


# Repairs without fitted parameters come first: with autocorrelation 0.5 a lag looks like a factor of 0.5.
STAGES: tuple[tuple[Proposal, ...], ...] = (
    (sign, lag, order, swapped),
    (signs, jacobian, constrained, tempered),
)


def alignment(draws: Chains, scores: Chains, weights: ChainWeights = None) -> float:
    """Compute the mean over dimensions of -E[x_i s_i], which is 1 for correct scores."""
    share = shares(weights)
    x = draws - (share * draws).mean(axis=(0, 1))
    return -float((share * x * scores).mean(axis=(0, 1)).mean())


def unrelated(draws: Chains, scores: Chains, weights: ChainWeights = None) -> bool:
    """Return whether the scores hardly depend on the draws, as those of other draws would."""
    share = shares(weights)
    x = draws - (share * draws).mean(axis=(0, 1))
    each = (share * x * scores / np.abs(scores).max()).mean(axis=2)  # no square overflows
    return bool(abs(each.mean()) < RELATED * each.std() / np.sqrt(each.size))


def _standard(chains: Chains, weights: ChainWeights) -> AnyArray:
    """Scale columns to mean 0 and norm 1, with rows times the square roots of their weights: (n, dim)."""
    flat = chains.reshape(-1, chains.shape[2])
    share = shares(None if weights is None else weights.ravel())
    centred = np.sqrt(share) * (flat - (share * flat).mean(axis=0))
    return centred / np.maximum(np.linalg.norm(centred, axis=0), np.finfo(np.float64).tiny)


def choices(
    options: list[tuple[Chains, Chains]], allowed: AnyArray, weights: ChainWeights = None
) -> Iterator[AnyArray]:
    """Choose among several draws and scores for each dimension: yields option numbers, (dim,).

    The first option is kept unless another is clearly better, by strong evidence first and then by weaker
    evidence. A mistake in one column does not affect the identities of another, so each is decided alone.

    Args:
        options: draws and scores of all dimensions, the given ones first.
        allowed: which options are available to which dimension, (option, dim) or (option, 1).
        weights: importance weights of the draws, if any.
    """
    misfits = np.stack([_misfit(*option, weights) for option in options])
    misfit = np.where(allowed, misfits, np.inf)
    best, gain = misfit.argmin(axis=0), misfit[0] - misfit.min(axis=0)
    previous = np.zeros_like(best)
    for evidence in EVIDENCE:
        chosen = np.where(gain > evidence, best, 0)
        if (chosen != previous).any():
            yield chosen
        previous = chosen


def _misfit(draws: Chains, scores: Chains, weights: ChainWeights) -> AnyArray:
    """Compute chi squared of the identities of each single dimension, (dim,)."""
    moves = np.ptp(draws, axis=(0, 1)) > 0
    y, scale = standardised(np.where(moves, draws, np.arange(draws.shape[1])[:, None]), weights)
    series = np.concatenate(own_identities(y, scores * scale), axis=2)
    means = means_and_errors(linearised(series, weights))
    chi = (means.mean / np.maximum(means.error, np.finfo(np.float64).tiny)) ** 2
    return np.where(moves, chi.reshape(4, -1).sum(axis=0), np.inf)


def energies(whole: Densities) -> Finding | None:
    r"""Find an error of the scores by comparing them with the log densities of the draws.

    For near draws $\log\pi(x_i) - \log\pi(x_j)$ is compared with $\tfrac12 (s_i + s_j) \cdot (x_i - x_j)$.
    The difference is explained by an error of the scores: a constant for each column (a Jacobian), a line
    (a prior), a factor (a temperature), or by scores that belong to other draws. An error is reported if it
    explains the differences at draws it was not fitted to, does not vanish with the distance, and would
    move an estimate by more than the standard error of the plain average.
    """
    misfit = whole.misfit
    if (
        misfit.agreement < OPPOSED
    ):  # a potential energy was given; the sign of scores is tested elsewhere
        whole = replace(whole, density=-whole.density)
        misfit = whole.misfit
    finding = _examine(whole, misfit)
    if finding is None and len(whole.draws) > 1:
        finding = _one_chain(whole, misfit)
    return finding


def _examine(block: Densities, misfit: Misfit, chain: int | None = None) -> Finding | None:
    """Find the repair or the error that explains the misfit of some chains."""
    least = block.least
    if misfit.share < SHARE * least:
        return None
    error = suspect(misfit, least)
    proposals = [*_misplaced(block)]
    if error is not None:
        proposals += _transforms(block, error.size >= 0.5 * error.size.max())
    misfits = [(block.repaired(repair).misfit.size, i) for i, repair in enumerate(proposals)]
    if misfits and min(misfits)[0] < REPAIRED * misfit.size:
        repair = proposals[min(misfits)[1]]
        return Finding(repair.kind, _of_chain(chain, repair.message), columns=repair.columns)
    return None if error is None else _described(error, block, least, chain)


def _one_chain(block: Densities, misfit: Misfit) -> Finding | None:
    """Examine single chains with a larger misfit than the others, if all chains together pass."""
    step = -(-block.density.size // len(misfit.y))
    chain_of_draw = np.arange(0, block.density.size, step) // block.density.shape[1]
    relative = np.abs(misfit.residual) / misfit.square
    for chain in range(len(block.draws)):
        touches = (chain_of_draw[misfit.first] == chain) | (chain_of_draw[misfit.second] == chain)
        if touches.all() or np.median(relative[touches]) < APART * np.median(relative[~touches]):
            continue
        rows = slice(chain, chain + 1)
        alone = Densities(block.draws[rows], block.scores[rows], block.density[rows], block.names)
        if alone.enough and (finding := _examine(alone, alone.misfit, chain)):
            return finding
    return None


def _misplaced(block: Densities) -> Iterator[Repair]:
    """Yield repairs for scores of other draws, chains or columns, or of the wrong sign."""
    for propose in (sign, lag, order, swapped):
        yield from propose(block.draws, block.scores, block.names)


def _transforms(block: Densities, which: AnyArray) -> list[Repair]:
    """Propose for suspect columns to add a Jacobian, or to transform the draws to the unconstrained space."""
    x, s = block.draws, block.scores
    columns = named(block.names, which)
    fixes = (
        "add 1 to the scores (a log transform)",
        "add 1 - 2 sigmoid(draws) to the scores (logit)",
        "subtract 2 tanh(draws) from the scores (a correlation)",
    )
    repairs = []
    for fix, term in zip(fixes, jacobian_terms(x), strict=True):
        evidence = "with it they are the gradients of the log density that came with the draws"
        message = lacks_jacobian(f" of {listed(columns)}", evidence, fix)
        repairs.append(Repair("jacobian", x, np.where(which, s + term, s), message, columns))
    for word, (allowed, free) in zip(("log", "logit"), unconstrained(x), strict=True):
        if allowed[which].all():
            message = are_constrained(
                columns, f"the log densities agree with the {word} of the draws"
            )
            repairs.append(Repair("constrained", np.where(which, free, x), s, message, columns))
    return repairs


def _described(error: Suspect, block: Densities, least: float, chain: int | None) -> Finding:
    """Describe an error of the scores as a finding."""
    worst = np.abs(error.bias).max()
    columns = named(block.names, np.abs(error.bias) >= max(0.5 * worst, 0.5 * least))
    causes = {
        "constant": "A term that is linear in these columns is missing or superfluous: the Jacobian of a "
        "transformed parameter, or part of a prior or of the data.",
        "tempered": "All scores are too large or too small by one factor: look for a temperature, a "
        "likelihood counted twice, or a minibatch gradient without its factor N / batch.",
        "clipped": "The largest scores all have the same size: gradients were clipped. Give the gradients "
        "as they are.",
        "smooth": "A term is left out, such as a prior or the Jacobian of a simplex or a correlation; or the "
        "scores are of other data.",
    }
    consequence = f", which moves the mean of {listed(columns)} by {worst:.2g} standard deviations"
    message = (
        "the scores are not the gradients of the log density that came with the draws"
        f"{consequence if worst >= least else ''}. {causes[error.kind]} {OTHERWISE}"
    )
    kind = {"constant": "term", "smooth": "term"}.get(error.kind, error.kind)
    return Finding(kind, _of_chain(chain, message), columns=columns if worst >= least else ())


def _of_chain(chain: int | None, message: str) -> str:
    """Prefix a message with the number of the chain that it is about, if any."""
    return message if chain is None else f"chain {chain} alone fails: {message}"
