from collections.abc import Iterator

import numpy as np

from .._types import AnyArray, Points
from ..chains._rhat import split_rhat
from ..data import Sample
from ..data._arrays import kish_size
from ._report import Finding
from ._tails import pareto_khat

STUCK = 0.98  # a chain that stays where it is for more than this part of its draws
SLOW = 0.9  # Metropolis at its best stays for three draws in four
STILL = 0.01  # of the pooled standard deviation, in every dimension: a chain that hardly moves
DIVERGING = 0.1  # more than this part of the draws is fatal
RHAT = 1.1
SHARED = 0.1  # the part of a chain's draws that another may have too
SAME, SAME_SINGLE = (
    1e-8,
    1e-6,
)  # of the size of a column: draws that are nearer are one, in float64, float32
CHANCE = 0.01  # the part of a chain's draws that may be near draws of another by chance
SHARING = 5  # chains that are looked at for copies of one draw
HEAVY, HOPELESS = 0.7, 1.0  # k-hat of weights: averages converge slowly, or not at all
SHOWN = 5


def integrity(sample: Sample) -> Iterator[Finding]:
    """What is wrong with the chains, whatever their scores."""
    yield from _constant(sample)
    yield from _duplicates(sample)
    yield from _stuck(sample)
    yield from _divergences(sample)
    yield from _disagreement(sample)
    yield from _weights(sample)


def _constant(sample: Sample) -> Iterator[Finding]:
    still = np.ptp(sample.x, axis=0) == 0
    if still.all():
        message = (
            f"all {sample.size} draws are the same: there is nothing to average over. Give more than one "
            "draw, and find out why the sampler never moved."
        )
        yield Finding("repeated", message, columns=sample.names)
    elif still.any():
        columns = tuple(name for name, one in zip(sample.names, still, strict=True) if one)
        message = (
            f"these dimensions never change: {listed(columns)}. A constant has no posterior to average "
            "over: leave those columns out of draws and scores."
        )
        yield Finding("constant", message, columns=columns)


def _duplicates(sample: Sample) -> Iterator[Finding]:
    """Chains that share draws, up to rounding: copies of each other, shifted or not."""
    if sample.chains == 1 or not np.ptp(sample.x, axis=0).any():
        return
    found = _shared(sample) if sample.space is None else _same(sample)
    if found is not None:
        chain, twin, part = found
        what = "are the same draws" if part == 1.0 else f"share {part:.0%} of their draws"
        message = (
            f"chains {chain} and {twin} {what}, up to rounding: the error bars would be too short. Run every "
            "chain with a seed of its own, or give the chain once."
        )
        yield Finding("duplicate", message)


def _same(sample: Sample) -> tuple[int, int, float] | None:
    """Two chains that are equal to the last bit: in a discrete space single draws may well be."""
    first: dict[bytes, int] = {}
    for chain, draws in enumerate(sample.draws):
        twin = first.setdefault(draws.tobytes(), chain)
        if twin != chain and np.ptp(draws, axis=0).any():
            return twin, chain, 1.0
    return None


def _shared(sample: Sample) -> tuple[int, int, float] | None:
    """Two chains with many draws in common, and the part of the first that is in the second."""
    x = np.asarray(sample.x, np.float64)
    scale = np.abs(x).max(axis=0) + x.std(axis=0)
    x = x / np.where(scale > 0, scale, 1.0)
    close = _closeness(x, sample)
    if (close < np.finfo(sample.dtype).eps).all():  # equal numbers may be chance
        return _same(sample)
    key = x @ np.random.default_rng(0).uniform(0.5, 1.5, size=sample.dim)
    order = np.argsort(key)
    chain = order // sample.length
    shared = np.zeros((sample.chains, sample.chains), dtype=int)
    for step in range(1, min(sample.chains, SHARING)):  # copies of a draw follow each other
        here, there = order[:-step], order[step:]
        near = (np.abs(x[here] - x[there]) <= close).all(axis=1)
        other = near & (chain[:-step] != chain[step:])
        np.add.at(shared, (chain[:-step][other], chain[step:][other]), 1)
    part = (shared + shared.T) / sample.length
    low, high = sorted(map(int, np.unravel_index(part.argmax(), part.shape)))
    return (low, high, min(float(part[low, high]), 1.0)) if part[low, high] > SHARED else None


def _closeness(x: Points, sample: Sample) -> AnyArray:
    """How near two numbers of each column are that may be one, up to rounding and not by chance, (dim,)."""
    rounding = SAME if sample.dtype == np.float64 else SAME_SINGLE
    quartiles = np.ptp(np.quantile(x, [0.25, 0.75], axis=0), axis=0)
    return np.minimum(rounding, quartiles * (CHANCE / sample.length) ** (1 / sample.dim))


def _stuck(sample: Sample) -> Iterator[Finding]:
    if sample.length < 4 or not np.ptp(sample.x, axis=0).any():
        return
    stays = (sample.draws[:, 1:] == sample.draws[:, :-1]).all(axis=2).mean(axis=1)
    spread = sample.x.std(axis=0)
    moving = spread > 0
    ratio = (sample.draws.std(axis=1)[:, moving] / spread[moving]).max(axis=1)
    for chain in np.flatnonzero((stays > STUCK) | (ratio < STILL)):
        message = (
            f"chain {chain} is stuck: it stays where it is for {stays[chain]:.0%} of its draws and covers "
            f"at most {ratio[chain]:.2g} of the spread of all chains. Leave it out and find out why: a "
            "step size too large, a start far from the mass, or a chain that was never run."
        )
        yield Finding("stuck", message)
    slow = np.flatnonzero((stays > SLOW) & (stays <= STUCK) & (ratio >= STILL))
    if len(slow):
        message = (
            f"{len(slow)} of {sample.chains} chains repeat the draw before in more than {SLOW:.0%} of "
            "their draws: nearly every proposal was rejected. A smaller step would give more."
        )
        yield Finding("rejections", message, fatal=False)


def _divergences(sample: Sample) -> Iterator[Finding]:
    if sample.diverging is None or not np.any(sample.diverging):
        return
    count = int(np.sum(sample.diverging))
    part = count / sample.size
    message = (
        f"{count} of {sample.size} draws ({part:.1%}) ended in a divergence: the sampler has left out a "
        "part of the posterior, and no estimate from its draws can know. Reparametrise (a non-centred "
        "form for a hierarchy) or raise the target acceptance rate, and sample again."
    )
    yield Finding("divergences", message, fatal=part > DIVERGING)


def _disagreement(sample: Sample) -> Iterator[Finding]:
    if sample.length < 4 or (np.ptp(sample.x, axis=0) == 0).any():
        return
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never move
        rhat = split_rhat(sample.draws)
    high = rhat > RHAT
    if high.any():
        columns = tuple(name for name, one in zip(sample.names, high, strict=True) if one)
        message = (
            f"the chains disagree on {listed(columns)} (R-hat up to {np.nanmax(rhat):.2f}): they have not "
            "converged, warm-up is still among the draws, or each has found another mode. The identities "
            "cannot see that. Run them longer, and leave out the warm-up, before believing an error bar."
        )
        yield Finding("rhat", message, fatal=False, columns=columns)


def _weights(sample: Sample) -> Iterator[Finding]:
    """Importance weights of which a few make most of every average."""
    if sample.weights is None:
        return
    khat = float(pareto_khat(sample.weights.reshape(-1, 1))[0])
    if khat > HEAVY:  # false for NaN: weights that are all the same
        message = (
            f"the weights have a tail of k-hat {khat:.2f} and are worth {kish_size(sample.weights):.0f} of "
            f"{sample.size} draws: above {HEAVY} a few of them make most of an average, and its error bar "
            "is too short. Draw from a density nearer to the target, or with heavier tails; "
            "steinax.data.pareto_smoothed(log_weights) helps a little."
        )
        yield Finding("weights", message, fatal=khat > HOPELESS)


def listed(names: tuple[str, ...]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
