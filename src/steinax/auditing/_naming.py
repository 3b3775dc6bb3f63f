from dataclasses import replace

import numpy as np

from .._types import AnyArray, Chains
from ._identities import Identities, Weights, chain_identities, identities
from ._integrity import listed
from ._repairs import STAGES, swapped
from ._report import Finding

WALL = 0.2  # a twentieth of the draws within this part of the way from the end to the median


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
    named = name_mistake(draws[rows], scores[rows], names, found, some)
    return replace(named, message=f"chain {chain} alone fails: {named.message}")


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
        columns = tuple(name for name, wall in zip(names, walls, strict=True) if wall)
        message += (
            f"The draws of {listed(columns)} crowd at an end of their range: where a density does not "
            "vanish at the boundary of its support the identities do not hold. Transform them to the "
            "whole line, with the Jacobian in the scores, or say where they live: "
            "Sample(..., space=steinax.spaces.Box(lower, upper)), with -np.inf or np.inf where there is no "
            "bound."
        )
        return Finding("boundary", message, columns=columns)
    message += (
        "No repair of a common mistake mends it. Compare the scores with finite differences at a few "
        "draws; look for another model or other data, for a parameter with a boundary, or for chains "
        "that have not converged. For an unadjusted sampler this is expected: give "
        'audit="unadjusted" to estimate.'
    )
    return Finding("scores", message)


def _walls(draws: Chains) -> AnyArray:
    """Which dimensions crowd at their smallest or largest draw, as beside a boundary."""
    low, five, middle, ninety, high = np.quantile(draws, [0, 0.05, 0.5, 0.95, 1], axis=(0, 1))
    return ((five - low) < WALL * (middle - low)) | ((high - ninety) < WALL * (high - middle))
