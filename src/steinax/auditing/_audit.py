"""The audit of a sample: its chains, the Stein identities of its scores, and its log densities."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from html import escape
from textwrap import fill
from typing import Any, ClassVar, Literal, get_args

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float

from .._numerics import few_threads
from .._require import warn
from .._show import listed
from .._types import AnyArray, Chains, Points
from ..chains import HEAVY, HOPELESS, pareto_khat, split_rhat
from ..data import Sample, check_moves, check_sample, kish_size
from ._differences import differences
from ._energies import densities
from ._identities import (
    Coordinates,
    Finding,
    Identities,
    chain_identities,
    coordinates,
    identities,
    named,
    tested,
)
from ._mistakes import energies, name_chain, name_mistake

STUCK = 0.98  # fraction of draws that repeat the previous one, above which a chain is stuck
SLOW = 0.9  # fraction above which a chain is slow; an optimal Metropolis sampler repeats 3 in 4
STILL = 0.01  # a chain with less of the pooled standard deviation in every dimension hardly moves
DIVERGING = 0.1  # fraction of divergent draws above which they are fatal
RHAT = 1.1
SHARED = 0.1  # fraction of a chain's draws that another chain may contain too
UNLIKE = 0.9  # least fraction of a chain's draws that differ, unless they are rounded
# Draws nearer than this fraction of the size of a column are equal, in float64 and float32.
SAME, SAME_SINGLE = 1e-8, 1e-6
CHANCE = 0.01  # fraction of a chain's draws that may be near draws of another by chance
SHARING = 5  # chains that are searched for copies of one draw


DRAWS_FIRST = (
    "The sampler or the model computed these scores, so look at the draws first: they may be those of an "
    "approximation such as ADVI, of another model or other data, or of chains that have not converged."
)
ASSUMED = "Draws of another log density would go unnoticed if they shift a mean by less than"
GIVE_VALUES = "sd: give from_logdensity(log_density=...) the values that the sampler kept."
GIVE_MINUS = "If they were computed from a function that you gave, give minus this function."
EXPECTED = (
    "audit: the scores are not exactly those of the draws, as is expected of an unadjusted sampler"
)
ADVICE = "check them with sx.audit(sample, log_density=...)."


class AuditReport(eqx.Module):
    r"""The result of an audit: its findings, and how large an error could have gone unnoticed.

    Args:
        problems: all findings, fatal ones and remarks.
        checked: the number of identities that were tested.
        limit: per dimension, the error of its mean, in its standard deviations, that wrong scores could
            cause unnoticed: critical value plus three standard errors of the mean score. (dim,)
        limit_squares: the corresponding limit for the mean of its square, in its variances. (dim,)
        strength: the largest deviation of an identity, in units of the allowed one.
        divergences: the number of divergent draws; None if the sample does not record them.
        compared: whether the scores were also compared with a log density.
        unadjusted: whether findings about the scores are expected, of a sampler without a Metropolis step.
        verified: whether the scores are known to be right: an adapter computed them from the model, or they
            agree with finite differences of the log density. True on spaces other than R^d, where this is
            not checked.
        assumed: whether the log density is one that the user gave, and nothing shows that it was sampled.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> sx.audit(sx.Sample(x, -x))
    audit passed: 15 identities hold
    The audit would not notice errors in the scores that shift a mean by less than 0.27 sd; check
    them with sx.audit(sample, log_density=...).
    """

    references: ClassVar[tuple[str, ...]] = ("vehtari2024pareto",)
    problems: tuple[Finding, ...] = eqx.field(static=True)
    checked: int = eqx.field(static=True)
    limit: AnyArray
    limit_squares: AnyArray
    strength: float = 0.0
    divergences: int | None = eqx.field(static=True, default=None)
    compared: bool = eqx.field(static=True, default=False)
    verified: bool = eqx.field(static=True, default=False)
    unadjusted: bool = eqx.field(static=True, default=False)
    assumed: bool = eqx.field(static=True, default=False)

    @property
    def passed(self) -> bool:
        """Whether nothing fatal was found."""
        return not any(problem.fatal for problem in self.problems)

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """The findings that forbid an estimate."""
        return tuple(problem for problem in self.problems if problem.fatal)

    def raise_if_failed(self) -> None:
        """Raise an `AuditError` unless the audit passed."""
        if not self.passed:
            raise AuditError(self)

    def merged(self, other: "AuditReport") -> "AuditReport":
        """Merge the reports of two samples: the findings and limits of both, concatenated.

        >>> import numpy as np
        >>> import steinax as sx
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
        >>> report = sx.audit(sx.Sample(x, -x))
        >>> report.merged(report).checked
        30
        """
        known = self.divergences is not None and other.divergences is not None
        return AuditReport(
            self.problems + other.problems,
            self.checked + other.checked,
            np.concatenate([self.limit, other.limit]),
            np.concatenate([self.limit_squares, other.limit_squares]),
            max(self.strength, other.strength),
            (self.divergences or 0) + (other.divergences or 0) if known else None,
            self.compared and other.compared,
            self.verified and other.verified,
            self.unadjusted and other.unadjusted,
            self.assumed or other.assumed,
        )

    def __repr__(self) -> str:
        remarks = [f"remark: {p.message}" for p in self.problems if not p.fatal]
        if self.passed:
            return "\n".join([self._passed(), *self._unseen(), *(f"  {line}" for line in remarks)])
        if self.unadjusted:
            return "\n".join([EXPECTED, *(f"  {line}" for line in remarks)])
        lines = [*(p.message for p in self.fatal), *remarks]
        return "\n".join(["audit failed:", *(f"  {line}" for line in lines)])

    def __str__(self) -> str:
        """Wrap the lines to the width of the terminal."""
        width = shutil.get_terminal_size().columns
        return "\n".join(
            fill(line, width, subsequent_indent="    ", break_long_words=False)
            for line in repr(self).split("\n")
        )

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line.strip())}</p>" for line in repr(self).split("\n"))

    def _passed(self) -> str:
        parts = [f"{self.checked} identities hold"] if self.checked else []
        if self.compared or (self.verified and np.isfinite(self.limit).all()):
            whose = "the given" if self.assumed else "the"
            parts.append(f"the scores agree with {whose} log density")
        tested = bool(parts)
        if self.divergences == 0:  # others are a finding
            parts.append("no divergences")
        if not tested:
            return ", ".join(["audit: the scores were not tested", *parts])
        few = not self.verified and self.checked and self.limit.max() > 1
        return f"audit {'inconclusive' if few else 'passed'}: {', '.join(parts)}"

    def _unseen(self) -> list[str]:
        """Describe the errors that would go unnoticed, unless the scores are verified."""
        if self.verified and not (self.assumed and self.checked and self.limit.max() < np.inf):
            return []
        if self.assumed:
            return [f"{ASSUMED} {float(self.limit.max()):.2g} {GIVE_VALUES}"]
        if not self.checked or not np.isfinite(self.limit).all():
            return [ADVICE[:1].upper() + ADVICE[1:]]
        if self.limit.max() > 1:
            return [f"There are too few effective draws to notice wrong scores; {ADVICE}"]
        hidden = f"{float(self.limit.max()):.2g}"
        shift = f"errors in the scores that shift a mean by less than {hidden} sd"
        return [f"The audit would not notice {shift}; {ADVICE}"]


class AuditError(ValueError):
    """Error raised when a sample that failed its audit is used; `report` holds the findings.

    >>> import numpy as np
    >>> import steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> try:
    ...     sx.audit(sx.Sample(x, x)).raise_if_failed()
    ... except sx.AuditError as error:
    ...     print(error.report.problems[0].kind)
    sign
    """

    def __init__(self, report: AuditReport):
        super().__init__(repr(report))
        self.report = report

    def __reduce__(self) -> tuple[type, tuple[AuditReport]]:
        return type(self), (self.report,)


def integrity(sample: Sample) -> Iterator[Finding]:
    """Yield the problems of the chains, regardless of their scores."""
    yield from _constant(sample)
    swapped = tuple(_swapped(sample))
    yield from swapped
    if not swapped:
        yield from _duplicates(sample)
    yield from _stuck(sample)
    yield from _divergences(sample)
    yield from _disagreement(sample)
    yield from _weights(sample)


def _constant(sample: Sample) -> Iterator[Finding]:
    """Find dimensions that never change."""
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


FEWEST, FOLLOW = 8, 0.3  # chains, and the correlation, from which neighbours follow each other


def axes_swapped(y: Float[AnyArray, "posterior dim chain draw"]) -> Bool[AnyArray, " posterior"]:
    """Tell where each chain resembles the one before it more than each draw the one before it.

    Chains are independent of each other, and draws of a chain are not: the axes are then swapped.

    Args:
        y: draws standardised to mean 0 and variance 1 in each dimension.
    """
    posteriors, _, chains, length = y.shape
    if chains < FEWEST or length < 2:
        return np.zeros(posteriors, dtype=bool)
    across = (y[:, :, 1:] * y[:, :, :-1]).mean(axis=(1, 2, 3))
    along = (y[..., 1:] * y[..., :-1]).mean(axis=(1, 2, 3))
    return (across > FOLLOW) & (along < across / 2)


def _swapped(sample: Sample) -> Iterator[Finding]:
    """Find arrays (draw, chain, dim)."""
    spread = sample.x.std(axis=0)
    y = (sample.draws - sample.x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if axes_swapped(np.moveaxis(y, -1, 0)[None]).any():
        message = (
            f"each of the {sample.chains} chains follows the one before it, and their draws do not: the axes "
            "seem to be swapped. Give (chain, draw, dim): draws.swapaxes(0, 1), and scores and variables "
            "likewise."
        )
        yield Finding("axes", message)
    elif walkers := interleaved(np.moveaxis(sample.draws, -1, 0)):
        message = (
            f"each draw resembles the one {walkers} before it and not its neighbours: {walkers} walkers seem "
            "to be interleaved, as in get_chain(flat=True) of emcee, and the error bars would be too short. "
            f"Give (chain, draw, dim): draws.reshape(-1, {walkers}, dim).swapaxes(0, 1), and scores and "
            "variables likewise."
        )
        yield Finding("axes", message)


LAGS, COLUMNS = 2000, 8  # the most walkers that are looked for, and the most dimensions
CERTAIN = 6.0  # standard errors of an autocorrelation


def interleaved(y: Float[AnyArray, "dim chain draw"]) -> int:
    """Find how many walkers alternate in each chain, from autocorrelations of ranks; 0 if none do.

    >>> rng = np.random.default_rng(0)
    >>> walkers = np.repeat(rng.normal(size=(50, 10)), 4, axis=0)  # (step, walker)
    >>> interleaved(walkers.reshape(1, 1, -1)), interleaved(walkers.T[None])
    (10, 0)
    """
    y = y[:COLUMNS, :, : 8 * LAGS]
    _, chains, length = y.shape
    most = min(LAGS, length // 4)
    if most < 4:
        return 0
    ranks = np.argsort(np.argsort(y.reshape(len(y), -1), axis=1), axis=1).reshape(y.shape)
    power = np.abs(np.fft.rfft(ranks - ranks.mean(axis=(1, 2), keepdims=True), 2 * length)) ** 2
    covariance = np.fft.irfft(power.mean(axis=(0, 1)))[: 2 * most + 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        related = covariance / covariance[0]
    lag = 1 + int(np.argmax(related[1 : most + 1]))
    highest = related[lag]
    alone = np.abs(related[1:lag]).max(initial=0.0) < highest / 2
    repeats = related[2 * lag] > highest**2 / 2
    least = max(FOLLOW, CERTAIN / np.sqrt(chains * (length - lag)))
    return lag if lag >= 4 and highest > least and alone and repeats else 0


def _duplicates(sample: Sample) -> Iterator[Finding]:
    """Find chains that share draws up to rounding: copies of each other, shifted or not."""
    if sample.chains == 1 or not np.ptp(sample.x, axis=0).any():
        return
    copies = _shared(sample) if sample.space is None else _same(sample)
    if copies is not None:
        chain, twin, fraction = copies
        what = "are the same draws" if fraction == 1.0 else f"share {fraction:.0%} of their draws"
        message = (
            f"chains {chain} and {twin} {what}, up to rounding: the error bars would be too short. Run "
            "every chain with its own seed, or give the chain only once."
        ) + _transposed(sample)
        yield Finding("duplicate", message)


def _same(sample: Sample) -> tuple[int, int, float] | None:
    """Find two chains that are equal bit by bit; single draws may coincide in a discrete space."""
    first: dict[bytes, int] = {}
    for chain, draws in enumerate(sample.draws):
        twin = first.setdefault(draws.tobytes(), chain)
        if twin != chain and np.ptp(draws, axis=0).any():
            return twin, chain, 1.0
    return None


def _shared(sample: Sample) -> tuple[int, int, float] | None:
    """Find two chains with many draws in common, and the fraction of draws that they share."""
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
        earlier, later = order[:-step], order[step:]
        near = (np.abs(x[earlier] - x[later]) <= close).all(axis=1)
        copied = near & (chain[:-step] != chain[step:])
        np.add.at(shared, (chain[:-step][copied], chain[step:][copied]), 1)
    fraction = (shared + shared.T) / sample.length
    low, high = sorted(map(int, np.unravel_index(fraction.argmax(), fraction.shape)))
    if fraction[low, high] <= SHARED:
        return None
    if _is_coarse(sample.draws[low]):  # draws that are rounded coincide by chance
        return _same(sample)
    return low, high, min(float(fraction[low, high]), 1.0)


def _is_coarse(draws: AnyArray) -> bool:
    """Return whether a chain, (draw, dim), often comes back to a draw that it has left."""
    moved = np.append(True, (draws[1:] != draws[:-1]).any(axis=1))
    return len({draw.tobytes() for draw in draws[moved]}) < UNLIKE * int(moved.sum())


def _closeness(x: Points, sample: Sample) -> AnyArray:
    """Compute the distance, (dim,), within which two numbers of a column are equal up to rounding."""
    rounding = SAME if sample.dtype == np.float64 else SAME_SINGLE
    quartiles = np.ptp(np.quantile(x, [0.25, 0.75], axis=0), axis=0)
    return np.minimum(rounding, quartiles * (CHANCE / sample.length) ** (1 / sample.dim))


def _stuck(sample: Sample) -> Iterator[Finding]:
    """Find chains that are stuck or reject nearly every proposal."""
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
            f"{len(slow)} of {sample.chains} chains repeat the previous draw in more than {SLOW:.0%} of "
            "their draws: nearly every proposal was rejected. A smaller step size would accept more."
        )
        yield Finding("rejections", message, fatal=False)


def _divergences(sample: Sample) -> Iterator[Finding]:
    """Report the number of divergent draws."""
    if sample.diverging is None or not np.any(sample.diverging):
        return
    count = int(np.sum(sample.diverging))
    fraction = count / sample.size
    message = (
        f"{count} of {sample.size} draws ({fraction:.1%}) ended in a divergence: the sampler may have missed "
        "a part of the posterior. Raise the target acceptance rate, or reparametrise, and sample again."
    )
    yield Finding("divergences", message, fatal=fraction > DIVERGING)


def _disagreement(sample: Sample) -> Iterator[Finding]:
    """Find dimensions on which the chains disagree, by split R-hat."""
    if sample.length < 4 or (np.ptp(sample.x, axis=0) == 0).any():
        return
    if sample.space is not None and not sample.space.has_marginals:
        return
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that never move
        rhat = split_rhat(sample.draws)
    high = rhat > RHAT
    if high.any():
        columns = named(sample.names, high)
        message = (
            f"the chains disagree on {listed(columns)} (R-hat up to {np.nanmax(rhat):.2f}): they have "
            "not converged, warm-up is still among the draws, or they are in different modes. The "
            "identities cannot detect that. Run them longer, and leave out the warm-up, before you "
            "trust an error bar."
        )
        yield Finding("rhat", message, fatal=False, columns=columns)


def _weights(sample: Sample) -> Iterator[Finding]:
    """Report importance weights so heavy-tailed that a few of them dominate every average."""
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


LEAST_DRAWS = 20  # draws; with fewer no identity can be tested
LEAST_LENGTH = 8


def audit(sample: Sample, *, log_density: Callable[[AnyArray], Any] | None = None) -> AuditReport:
    r"""Test whether the scores belong to the draws, and whether the chains are sound.

    If the scores $s$ are the gradients of the log density of the draws $x$, then $E[s_j] = 0$ and
    $E[x_i s_j] = -1_{i = j}$. On standardised draws, with standard errors that allow for autocorrelation,
    these and two more functions of each dimension are tested. Correct scores are refused once in 12,500
    audits by design and less than once in 1,000 as measured, heavy tails and short chains included.
    When an identity fails, each common mistake is repaired in turn (sign, lag, order of columns or chains,
    Jacobian, constrained draws, temperature), and the repair that makes all identities hold is named.

    If the sample has log densities, the scores are compared with their differences between near draws,
    $\log\pi(x_i) - \log\pi(x_j) \approx \tfrac12 (s_i + s_j) \cdot (x_i - x_j)$. That finds a missing prior
    or Jacobian, a temperature, other data and scores of other draws where the identities are too weak.

    If the draws have importance weights, all expectations are weighted, and a heavy tail of the weights
    is a finding: a remark if $\hat k$ is above 0.7, fatal above 1.

    Passing is not proof: the report's `limit` says how large an error could go unnoticed, and these
    identities reveal neither missed modes nor chains that have not converged.

    Args:
        sample: draws and scores.
        log_density: the log density itself, if it is at hand, up to a constant: a function of one draw,
            (dim,), or of many, (n, dim), in NumPy or jax. The scores are compared with its finite differences
            at up to 20 draws, spread over the sample. Where they disagree, the finding names the parameter,
            the draw and the likely cause. The outcome is stored in the sample's `verified`.

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
    check_sample(sample)
    compared = [] if log_density is None else _compare(sample, log_density)
    known = {"verified": sample.verified or sample.space is not None, "assumed": sample.assumed}
    problems = list(integrity(sample))
    kinds = {problem.kind for problem in problems}
    diverging = None if sample.diverging is None else int(np.sum(sample.diverging))
    report = partial(AuditReport, divergences=diverging, **known)
    unlimited = np.full(sample.dim, np.inf)
    if (
        sample.size < LEAST_DRAWS
        or sample.length < LEAST_LENGTH
        or kinds & {"constant", "repeated"}
    ):
        if not kinds & {"constant", "repeated"}:
            problems.append(_short(sample))
        problems[:0] = compared
        return report(tuple(problems), 0, unlimited, unlimited, compared=log_density is not None)
    log_densities = None if sample.log_density is None else densities(sample)
    draws = np.asarray(sample.draws, dtype=np.float64)
    scores = np.asarray(sample.scores, dtype=np.float64)
    with few_threads(sample), np.errstate(all="ignore"):  # an overflow gives NaN, which fails
        if sample.space is None:
            frame = coordinates(draws, scores, sample.weights)
            tests = identities(draws, scores, sample.weights, frame)
            limit, limit_squares = tests.limit
            energy_finding = None if log_densities is None else energies(log_densities)
            score_finding = energy_finding or _against(
                sample, draws, scores, tests, frame, apart="stuck" not in kinds
            )
        else:  # no limits are known for other spaces
            series = sample.space.identities(draws, scores)
            tests = tested([series], sample.dim, sample.weights)
            limit, limit_squares = unlimited, unlimited
            score_finding = None if tests.hold else _in_space(sample, draws, scores)
    if score_finding is not None and sample.verified:
        advice = GIVE_MINUS if score_finding.kind == "sign" else DRAWS_FIRST
        score_finding = replace(score_finding, message=f"{score_finding.message} {advice}")
    problems[:0] = compared if score_finding is None else [*compared, score_finding]
    strength, checked = float(tests.strength.max()), tests.strength.size
    was_compared = log_density is not None or log_densities is not None
    return report(tuple(problems), checked, limit, limit_squares, strength, compared=was_compared)


def _compare(sample: Sample, log_density: Callable[[AnyArray], Any]) -> list[Finding]:
    """Compare the scores with a log density, and store the outcome in the sample."""
    finding = differences(sample, log_density)
    verified = finding is None or (not finding.fatal and sample.verified)
    object.__setattr__(sample, "verified", verified)  # a Sample is frozen otherwise
    return [] if finding is None else [finding]


def _against(
    sample: Sample,
    draws: Chains,
    scores: Chains,
    tests: Identities,
    frame: Coordinates,
    apart: bool,
) -> Finding | None:
    """Find a mistake in the scores from the identities of all chains, or else of single chains.

    Args:
        sample: the draws and scores.
        draws: the draws in float64.
        scores: the scores in float64.
        tests: the tested identities of all chains.
        frame: the coordinates in which they were tested.
        apart: whether to test single chains too.
    """
    if not tests.hold:
        return name_mistake(draws, scores, sample.names, tests, sample.weights)
    if apart and sample.chains > 1:
        strength = chain_identities(draws, scores, sample.weights, frame)
        if not (strength <= 1.0).all():
            return name_chain(draws, scores, sample.names, strength, sample.weights)
    return None


def _in_space(sample: Sample, draws: Chains, scores: Chains) -> Finding:
    """Find the first repair of its space with which the identities hold."""
    assert sample.space is not None
    for repair in sample.space.repairs(draws, scores):
        weights = None if sample.weights is None else sample.weights[:, repair.kept]
        series = sample.space.identities(repair.draws, repair.scores)
        if tested([series], sample.dim, weights).hold:
            return Finding(repair.kind, repair.message, columns=repair.columns)
    return _unnamed(sample)


def _unnamed(sample: Sample) -> Finding:
    """Report failed identities in a space of which no repair makes them hold."""
    message = (
        f"the scores are not those of the draws on {sample.space!r}: its Stein identities fail. Check that "
        "scores and draws are in the same order and that the space is the right one; see steinax.spaces."
    )
    return Finding("scores", message)


def _short(sample: Sample) -> Finding:
    """Report that there are too few draws to test the scores."""
    message = (
        f"{sample.chains} x {sample.length} draws are too few to test the scores: give at least "
        f"{LEAST_LENGTH} in each chain and {LEAST_DRAWS} in all."
    )
    return Finding("short", message + _transposed(sample), fatal=False)


def _transposed(sample: Sample) -> str:
    """Suggest swapping the axes if there are more chains than draws in each."""
    if sample.chains <= max(LEAST_DRAWS, sample.length):
        return ""
    return (
        f" If there are {sample.length} chains of {sample.chains} draws, give (chain, draw, dim): "
        "draws.swapaxes(0, 1)."
    )


type AuditMode = Literal["raise", "warn", "off", "unadjusted"]
# Findings about the chains or weights rather than the scores.
CHAINS = ("constant", "repeated", "axes", "duplicate", "stuck", "divergences", "weights")


class AuditWarning(UserWarning):
    """Warning given when a sample is used although it failed its audit.

    >>> import warnings
    >>> warnings.simplefilter("error", AuditWarning)  # to have it raised
    >>> warnings.simplefilter("default", AuditWarning)
    """


def check_mode(mode: str) -> None:
    """Raise a ValueError unless the mode is a valid `AuditMode`."""
    if mode not in (modes := get_args(AuditMode.__value__)):
        raise ValueError(f"audit={mode!r}: use one of {', '.join(map(repr, modes))}.")


def audited(sample: Sample, mode: AuditMode) -> AuditReport | None:
    """Audit a sample, and raise or warn if it fails, as the mode says.

    Use it in custom estimators, and pass the report to `with_audit`. A sample that cannot be
    standardised is refused in every mode.

    Args:
        sample: the draws and scores.
        mode: `"raise"`; `"warn"`, to continue with a warning; `"unadjusted"`, to continue if the
            draws are not exactly from the target, as with samplers without a Metropolis step;
            `"off"`.

    >>> import numpy as np, steinax as sx
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 2))
    >>> audited(sx.Sample(x, -x), "raise").passed
    True
    """
    check_mode(mode)
    check_moves(sample)
    if mode == "off":
        return None
    report = audit(sample)
    chains = any(problem.kind in CHAINS for problem in report.fatal)
    act_on(report, "raise" if mode == "unadjusted" and chains else mode)
    return replace(report, unadjusted=True) if mode == "unadjusted" else report


def act_on(report: AuditReport, mode: AuditMode) -> None:
    """Raise or warn if an audit failed, as the mode says."""
    if mode == "raise":
        report.raise_if_failed()
    if mode == "warn" and not report.passed:
        warn(repr(report), AuditWarning)
