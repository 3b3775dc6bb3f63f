"""The audit: chains and divergences, the identities of scores, and log densities."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from .._show import listed
from .._types import AnyArray, Chains, Points
from ..chains._statistics import split_rhat
from ..data import Sample
from ..data._sample import kish_size
from ._differences import differences
from ._energies import densities, energies
from ._identities import Coordinates, Identities, chain_identities, coordinates, identities, tested
from ._mistakes import name_chain, name_mistake
from ._report import AuditReport, Finding, named

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
# k-hat of weights and of integrands: averages converge slowly, or not at all
HEAVY, HOPELESS = 0.7, 1.0
OUTLYING = 6.0  # standard deviations: where the largest draw is nearer, the tail is light
LIMIT = 1.0 / 3.0  # above it the third moment is infinite, and standard errors converge slowly
PRIOR_K, PRIOR_DRAWS, PRIOR_SCALE = 0.5, 10, 3  # the weak prior of Vehtari et al. (2024)
TIES = 1e-12


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
        columns = named(sample.names, still)
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
        columns = named(sample.names, high)
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


def pareto_khat(columns: Float[AnyArray, "n p"]) -> Float[AnyArray, " p"]:
    r"""The tail index $\hat k$ of each column: moments beyond the order $1/k$ are infinite.

    A generalised Pareto distribution is fitted to the largest $\min(n/5, 3\sqrt n)$ of
    $|x - \operatorname{median}(x)|$ by the method of Zhang and Stephens (2009) with the weak prior
    of Vehtari et al. (2024), the same numbers as arviz-stats gives for such a tail. Both tails
    are one here: a column is as heavy as its heavier side. NaN for a tail of fewer than five draws,
    and for one whose values are all the same.

    Args:
        columns: shape (n, p).

    >>> draws = np.random.default_rng(0).standard_t(2, size=(1000, 1))
    >>> pareto_khat(np.hstack([draws, np.tanh(draws)])).round(1).tolist()
    [0.5, -2.1]
    """
    excess = _tail(np.asarray(columns, dtype=np.float64))
    p, m = excess.shape
    if m < 5:
        return np.full(p, np.nan)
    grid = 30 + int(m**0.5)
    quartile = excess[:, int(m / 4 + 0.5) - 1]
    usable = quartile > np.maximum(excess[:, 0], TIES * excess[:, -1])
    excess = np.where(usable[:, None], excess, 1.0 + np.arange(m))
    quartile = np.where(usable, quartile, 2.0)
    steps = 1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))
    b = steps[:, None] / (PRIOR_SCALE * quartile) + 1.0 / excess[:, -1]
    k = _mean_log(b, excess)
    log_weight = m * (np.log(-b / k) - k - 1.0)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    weight = np.where(weight >= 10 * np.finfo(np.float64).eps, weight, 0.0)
    b = (b * weight).sum(axis=0) / weight.sum(axis=0)
    k = _mean_log(b[None], excess)[0]
    k = (m * k + PRIOR_DRAWS * PRIOR_K) / (m + PRIOR_DRAWS)
    return np.where(usable, k, np.nan)


def heavy(columns: Float[AnyArray, "n p"], errors: float = 2.0) -> Bool[AnyArray, " p"]:
    r"""Which columns are surely heavy-tailed: $\hat k$ above 1/3 by two of its standard errors.

    The standard error is $(1 + \hat k) / \sqrt M$ for a tail of $M$ draws. Without it, light columns
    are flagged by chance: at 100 draws the tail has 20, and the standard error is 0.3. A column that
    is constant is not heavy.

    Args:
        columns: shape (n, p).
        errors: by how many standard errors; with 0 no column above the limit is left unflagged.

    >>> draws = np.random.default_rng(0).normal(size=(1000, 1))
    >>> heavy(np.hstack([draws, np.exp(3 * draws)])).tolist()
    [False, True]
    """
    k = pareto_khat(columns)
    return np.nan_to_num(k - errors * _khat_error(k, len(columns)), nan=-1.0) > LIMIT


def may_lack_mean(columns: Float[AnyArray, "n p"]) -> Bool[AnyArray, " p"]:
    r"""Which columns have a tail so heavy that their mean may not exist: $\hat k$ above 0.7.

    $\hat k$ must also exceed 1/2, where the variance becomes infinite, by one and a half of its standard
    errors, or short samples of light tails would be flagged by chance. The mean is infinite from $k = 1$ on.
    Columns whose largest deviation is not large for their standard deviation are not looked at further.

    Args:
        columns: shape (n, p).

    >>> draws = np.random.default_rng(0).normal(size=(4000, 2))
    >>> may_lack_mean(np.stack([draws[:, 0], draws[:, 0] / draws[:, 1]], axis=1)).tolist()
    [False, True]
    """
    columns = np.asarray(columns, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(columns - columns.mean(axis=0)).max(axis=0)
        far = np.flatnonzero(apart > OUTLYING * columns.std(axis=0))
    found = np.zeros(columns.shape[1], dtype=bool)
    far = far[np.isfinite(apart[far])]
    if len(far):
        k = pareto_khat(columns[:, far])
        surely = k - 1.5 * _khat_error(k, len(columns))
        found[far] = (k > HEAVY) & (surely > 0.5)  # false for NaN
    return found


def _khat_error(k: AnyArray, n: int) -> AnyArray:
    """The standard error of k-hat from n draws."""
    return (1.0 + k) / np.sqrt(max(tail_length(n), 1))


def tail_length(n: int) -> int:
    """How many of n draws make the tail."""
    return int(np.ceil(min(n / 5.0, 3.0 * np.sqrt(n))))


def _tail(columns: AnyArray) -> AnyArray:
    """By how much the largest deviations from the median exceed the next one: (p, m), sorted."""
    n = len(columns)
    m = min(tail_length(n), n - 1)
    rows = np.sort(columns.T, axis=1)
    middle = 0.5 * (rows[:, (n - 1) // 2] + rows[:, n // 2])
    largest = np.sort(np.abs(rows - middle[:, None]), axis=1)[:, n - m - 1 :]
    return largest[:, 1:] - largest[:, :1]


def _mean_log(b: AnyArray, excess: AnyArray) -> AnyArray:
    """The mean of log(1 - b x) over each tail for each b of the grid: (grid, p)."""
    out, work = np.empty_like(b), np.empty_like(excess)
    for row, mean in zip(b, out, strict=True):
        np.multiply(excess, -row[:, None], out=work)
        work += 1.0
        np.log(work, out=work).mean(axis=1, out=mean)
    return out


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
        log_density: the log density itself, if it is at hand, up to a constant: a function of one draw,
            (dim,), or of many, (n, dim), in NumPy or jax. The scores are compared with its finite differences
            at up to 20 draws, spread over the sample. Where they disagree, the parameter, the draw and what
            it looks like are named. If they agree the sample remembers that its scores are verified, and if
            they disagree that they are not.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sx.audit(sx.Sample(x, -2 * x)).problems[0].kind
    'tempered'
    >>> by_hand = sx.Sample(x, -x)
    >>> sx.audit(by_hand, log_density=lambda x: -0.5 * x @ x)
    audit passed: 15 identities hold, the scores agree with the log density
    >>> by_hand.verified
    True
    """
    compared = [] if log_density is None else _compare(sample, log_density)
    known = sample.verified or sample.space is not None
    problems = list(integrity(sample))
    kinds = {problem.kind for problem in problems}
    diverging = None if sample.diverging is None else int(np.sum(sample.diverging))
    nothing = np.full(sample.dim, np.inf)
    if sample.size < LEAST or sample.length < LEAST_LENGTH or kinds & {"constant", "repeated"}:
        if not kinds & {"constant", "repeated"}:
            problems.append(_short(sample))
        problems[:0] = compared
        asked = log_density is not None
        return AuditReport(tuple(problems), 0, nothing, nothing, 0.0, diverging, asked, known)
    whole = densities(sample)
    draws = np.asarray(sample.draws, dtype=np.float64)
    scores = np.asarray(sample.scores, dtype=np.float64)
    with np.errstate(all="ignore"):  # what overflows is not a number, and fails
        if sample.space is None:
            at = coordinates(draws, scores, sample.weights)
            found = identities(draws, scores, sample.weights, at)
            means, squares = found.limit
            told = None if whole is None else energies(whole)
            wrong = told or _against(sample, draws, scores, found, at, apart="stuck" not in kinds)
        else:  # where no limit is known, and no mistake by name
            own = sample.space.identities(draws, scores)
            found = tested([own], sample.dim, sample.weights)
            means, squares = nothing, nothing
            wrong = None if found.hold else _unnamed(sample)
    problems[:0] = compared if wrong is None else [*compared, wrong]
    strength, checked = float(found.strength.max()), found.strength.size
    asked = log_density is not None or whole is not None
    return AuditReport(tuple(problems), checked, means, squares, strength, diverging, asked, known)


def _compare(sample: Sample, log_density: Callable[[AnyArray], Any]) -> list[Finding]:
    """Compare the scores with a log density, and let the sample remember the outcome."""
    found = differences(sample, log_density)
    verified = found is None or (not found.fatal and sample.verified)
    object.__setattr__(sample, "verified", verified)  # all else of a sample is frozen
    return [] if found is None else [found]


def _against(
    sample: Sample, draws: Chains, scores: Chains, found: Identities, at: Coordinates, apart: bool
) -> Finding | None:
    """What the identities of all chains or those of single chains say against the scores.

    Args:
        sample: the draws and scores.
        draws: the same in float64.
        scores: the same.
        found: the identities of all chains.
        at: the coordinates in which they were tested.
        apart: whether to look at single chains.
    """
    if not found.hold:
        return name_mistake(draws, scores, sample.names, found, sample.weights)
    if apart and sample.chains > 1:
        strength = chain_identities(draws, scores, sample.weights, at)
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
