"""The evidence, from tempered posteriors."""

import abc
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._precision import as_leaf, precision
from .._show import describe
from .._types import AnyArray, Scalar
from ..auditing import AuditError
from ..citing import references_of
from ..data import Integrands, Sample
from ..estimation import AbstractSplit, AuditMode, CrossFit, Estimate, audited, estimate, with_audit
from ..estimation._result import ARRAYS
from ..estimation._splits import moves
from ..families import AbstractFamily
from ..fitting import prepare
from ..objectives import AbstractPenalty
from ..solvers import AbstractSolver, Auto, HeldOut, Problem
from ._result import Evidence
from ._tempered import Tempered

LOG_LIKELIHOOD = "log likelihood"


class Contribution(eqx.Module):
    """What one temperature adds to the log evidence: a function of some expectations there."""

    integrands: Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods
    share: Callable[[AnyArray], AnyArray]  # of their expectations, in the same order


class AbstractMethod(eqx.Module):
    """How the log evidence is made of expectations at the temperatures: one `contribution` for each.

    >>> isinstance(ThermodynamicIntegration(), AbstractMethod)
    True
    """

    power: ClassVar[int | None]  # to which the steps stand in the error of the quadrature

    @abc.abstractmethod
    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The integrands at one temperature, and what their expectations add.

        Args:
            values: the log likelihood of each draw.
            before: the step from the temperature below, 0 at the first.
            after: the step to the temperature above, 0 at the last.
        """


class ThermodynamicIntegration(AbstractMethod):
    r"""The integral of the mean log likelihood over inverse temperatures, by the trapezium rule corrected.

    $$ \log Z = \int_0^1 \mu(t)\, dt \approx \sum_j \frac{\Delta_j}{2} (\mu_j + \mu_{j+1})
       - \frac{\Delta_j^2}{12} (V_{j+1} - V_j) , $$

    where $\mu_j$ and $V_j = \mu'(t_j)$ are the mean and the variance of $\log L$ at $t_j$, and
    $\Delta_j = t_{j+1} - t_j$ (Friel, Hurn and Wyse 2014).

    >>> terms = ThermodynamicIntegration().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5)
    >>> round(float(terms.share(jnp.array([2.0, 1.0]))), 4)  # 2 / 4 + 1 / 48
    0.5208
    """

    power: ClassVar[int | None] = 4

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The log likelihood and its squared deviation from the plain mean."""
        centre = float(np.mean(values))
        weight, second = (before + after) / 2, (after**2 - before**2) / 12

        def share(means: AnyArray) -> AnyArray:
            return weight * means[0] + second * (means[1] - (means[0] - centre) ** 2)

        return Contribution(
            lambda values: {LOG_LIKELIHOOD: values, "squared": (values - centre) ** 2}, share
        )


class Trapezium(AbstractMethod):
    r"""Thermodynamic integration by the trapezium rule, without the variances.

    >>> float(Trapezium().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5).share(jnp.array([2.0])))
    0.5
    """

    power: ClassVar[int | None] = 2

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """The log likelihood alone."""
        weight = (before + after) / 2
        return Contribution(
            lambda values: {LOG_LIKELIHOOD: values}, lambda means: weight * means[0]
        )


class SteppingStones(AbstractMethod):
    r"""Ratios of normalising constants of neighbouring temperatures: there is no quadrature.

    $$ \log Z = \sum_j \log \mathbb{E}_{t_j}[L^{a \Delta_j}]
       - \log \mathbb{E}_{t_{j+1}}[L^{-(1 - a) \Delta_j}] . $$

    With $a = 1/2$ both neighbours go half the way. With $a = 1$ each stone is reached from below: that is
    the evidence of sequential Monte Carlo, and its integrands are steeper.

    Args:
        reach: $a$, the part of each step that is made from below.

    >>> terms = SteppingStones().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5)
    >>> list(terms.integrands(np.array([[1.0, 3.0]])))
    ['step up']
    """

    reach: Scalar = eqx.field(converter=as_leaf, default=0.5)
    power: ClassVar[int | None] = None

    def __check_init__(self):
        if not 0 <= float(self.reach) <= 1:
            raise ValueError(f"reach={float(self.reach):g}: give a part of a step, from 0 to 1.")

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """Powers of the likelihood, divided by their largest value."""
        powers = {
            "step up": float(self.reach) * after,
            "step down": -(1 - float(self.reach)) * before,
        }
        powers = {name: power for name, power in powers.items() if power != 0}
        largest = {name: float(np.max(power * values)) for name, power in powers.items()}
        signs = np.sign(list(powers.values()))

        def integrands(values: AnyArray) -> dict[str, AnyArray]:
            return {name: np.exp(p * values - largest[name]) for name, p in powers.items()}

        def share(means: AnyArray) -> AnyArray:
            return jnp.sum(signs * (np.array([*largest.values()]) + jnp.log(means)))

        return Contribution(integrands, share)


type Functions = Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods


class Options(NamedTuple):
    """How control variates are fitted, at every temperature alike."""

    split: AbstractSplit | None
    penalty: AbstractPenalty | None
    solver: AbstractSolver | None
    audit: AuditMode
    neighbours: int


def controlled(
    tempered: Tempered,
    place: int,
    f: Functions,
    family: AbstractFamily | None,
    options: Options,
) -> Estimate:
    """Expectations at one temperature of functions of the log likelihood.

    Args:
        tempered: the draws.
        place: of the temperature.
        f: the integrands.
        family: of control variates, or None to choose.
        options: how they are fitted.
    """
    split, penalty, solver, audit, neighbours = options
    sample, wanted = tempered.sample(place), f(tempered.log_likelihood[place])
    if neighbours == 0:
        options_of = {"split": split, "penalty": penalty, "solver": solver}
        return estimate(wanted, sample, family, audit=audit, **options_of)
    if family is None or split is not None or neighbours < 0:
        raise ValueError(
            f"neighbours={neighbours} goes with a family: give one such as Polynomial(2) + "
            "KernelTranslates(), and no split; or leave neighbours out, and a family is chosen."
        )
    report = audited(sample, audit)
    pool, values = _pool(tempered, place, neighbours)
    own, everything = _integrands(wanted), _integrands(f(values))
    with precision(np.float64):
        problem, _ = prepare(everything, pool, family, penalty, None)
        solver = Auto() if solver is None else solver
        held = _held_out(problem, sample, pool, solver)
    chosen = (describe(problem.family),) * len(own.names)
    papers = references_of(problem.family, CrossFit()) + solver.references_for(problem)
    found = Estimate.from_held_out(held, own, chosen, references=papers)
    return with_audit(found, report, audit)


def _held_out(problem: Problem, sample: Sample, pool: Sample, solver: AbstractSolver) -> HeldOut:
    """What is left of f on a temperature's own draws, each fold left out of a fit to all of the pool."""
    own = len(CrossFit().boundaries(sample.chains, sample.length))
    folds = CrossFit(own * pool.chains // sample.chains).boundaries(pool.chains, pool.length)
    held = solver.crossfit(problem, folds)
    unseen = None
    if held.intercepts is not None:  # those of the neighbours' folds say nothing of our mean
        ours = moves(held.residual, held.intercepts, folds)[:own]
        unseen = ((ours - ours.mean(axis=0)) ** 2).sum(axis=0)
    residual = np.asarray(held.residual)[: sample.size]
    return HeldOut(residual, f"{own} folds and neighbours, {held.note}", unseen=unseen)


def _integrands(values: dict[str, AnyArray]) -> Integrands:
    return Integrands(np.stack(list(values.values()), axis=-1), tuple(values))


def _pool(tempered: Tempered, place: int, reach: int) -> tuple[Sample, AnyArray]:
    """The draws of a temperature and its neighbours, all with the scores of that temperature.

    A fit needs no draws from the density that it is for: any draws show where f is, and every
    member of the family has mean zero under the scores' density.
    """
    t, length = tempered.temperatures[place], tempered.draws[place].shape[1]
    near = range(max(place - reach, 0), min(place + reach, len(tempered) - 1) + 1)
    order = [place, *(i for i in near if i != place)]

    def together(parts: tuple[AnyArray, ...]) -> np.ndarray:
        return np.concatenate([_in_chains(np.asarray(parts[i]), length) for i in order])

    prior, likelihood = together(tempered.prior_scores), together(tempered.likelihood_scores)
    pool = Sample(together(tempered.draws), prior + t * likelihood, tempered.names)
    return pool, together(tuple(one[..., None] for one in tempered.log_likelihood))[..., 0]


def _in_chains(part: np.ndarray, length: int) -> np.ndarray:
    """Draws as chains of a length, what is left over left out."""
    flat = part.reshape(-1, part.shape[-1])
    count = len(flat) // length
    return flat[: count * length].reshape(count, length, part.shape[-1])


def quadrature_error(
    tempered: Tempered, method: AbstractMethod, means: Sequence[AnyArray]
) -> float:
    r"""The error of the quadrature, by the rule of Richardson: $|Q_h - Q_{2h}| / (2^p - 1)$.

    $Q_{2h}$ is from every other temperature, and $p$ is the method's power. Zero where the method has no
    quadrature, NaN where there are no temperatures to leave out.

    Args:
        tempered: the draws.
        method: how expectations make the log evidence.
        means: the expectations of the method's integrands at each temperature.
    """
    last = len(tempered) - 1
    if method.power is None:
        return 0.0
    if last < 2:
        return float("nan")
    whole = _total(tempered, method, means, np.arange(last + 1))
    half = _total(tempered, method, means, np.unique([*range(0, last, 2), last]))
    return abs(whole - half) / (2**method.power - 1)


def _total(
    tempered: Tempered, method: AbstractMethod, means: Sequence[AnyArray], places: np.ndarray
) -> float:
    """The log evidence from some of the temperatures."""
    steps = np.r_[0.0, np.diff(tempered.temperatures[places]), 0.0]
    total = 0.0
    with precision(np.float64):
        for i, place in enumerate(places):
            terms = method.contribution(
                tempered.log_likelihood[place], float(steps[i]), float(steps[i + 1])
            )
            total += float(terms.share(jnp.asarray(means[place])))
    return total


CURVED = 0.5  # of an error of a share, beyond which its linear part says little
TOO_CURVED = (
    "a share is a logarithm that is too far from linear within its error; give more draws or more "
    "temperatures, or use ThermodynamicIntegration()"
)


def moved(linear: Estimate, value: float, bend: float) -> Estimate:
    """The share of a temperature from its linear part, its value at the plain means and its bend."""
    curved = not abs(bend) <= CURVED + linear.mcse or not linear.mcse <= CURVED
    bend = bend if np.isfinite(bend) else 0.0
    error = np.asarray(np.nan) if curved else linear.mcse
    return replace(
        linear,
        value=np.asarray(value + linear.value + bend),
        plain_value=np.asarray(value + linear.plain_value),
        mcse=error,
        reason=TOO_CURVED if curved else linear.reason,
    )


def nothing(like: Estimate) -> Estimate:
    """The share of a temperature that adds nothing."""
    zeros = {field: np.zeros_like(getattr(like, field)) for field in _ZEROS}
    return replace(like, worth=np.asarray(1.0), chosen=("nothing",), candidates=None, **zeros)


_ZEROS = ("value", "mcse", "batches", "plain_value", "plain_mcse", "plain_batches")


def summed(
    temperatures: AnyArray,
    shares: Sequence[Estimate],
    log_likelihood: Sequence[Estimate],
    exchanged: bool,
    quadrature: float,
    method: AbstractMethod,
) -> Evidence:
    """The log evidence: values are added, and the variances of independent temperatures."""
    each = beside_each_other(shares, temperatures)
    error, freedom = _error(each.mcse, each.freedom, each.batches, exchanged)
    plain, plain_freedom = _error(
        each.plain_mcse, each.plain_freedom, each.plain_batches, exchanged
    )
    return Evidence(
        value=np.asarray(each.value.sum()),
        mcse=error,
        plain_value=np.asarray(each.plain_value.sum()),
        plain_mcse=plain,
        worth=np.asarray((plain / error) ** 2),
        freedom=freedom,
        plain_freedom=plain_freedom,
        quadrature_error=np.asarray(quadrature),
        temperatures=np.asarray(temperatures),
        shares=each,
        log_likelihood=beside_each_other(log_likelihood, temperatures),
        method=describe(method),
        reason=each.reason,
    )


def beside_each_other(estimates: Sequence[Estimate], temperatures: AnyArray) -> Estimate:
    """One estimate with a row for each temperature, each from its own draws."""
    arrays: dict[str, Any] = {field: _stacked(estimates, field) for field in ARRAYS}
    names = tuple(f"t = {t:.4g}" for t in temperatures)
    chosen = tuple(one.chosen[0] for one in estimates)
    reason = next((one.reason for one in estimates if one.reason is not None), None)
    texts = {"note": estimates[0].note, "reason": reason}
    papers = references_of(tuple(estimates))
    return Estimate(names=names, chosen=chosen, references=papers, **texts, **arrays)


def _stacked(estimates: Sequence[Estimate], field: str) -> np.ndarray:
    """One array of all estimates; batches are cut to the fewest that any has."""
    parts = [np.asarray(getattr(one, field)) for one in estimates]
    fewest = min(len(part) for part in parts) if parts[0].ndim else 0
    return np.stack([part[:fewest] if part.ndim else part for part in parts], axis=-1)


def _error(
    error: AnyArray, freedom: AnyArray, batches: AnyArray, exchanged: bool
) -> tuple[AnyArray, AnyArray]:
    """The standard error of a sum, and its degrees of freedom by the rule of Welch."""
    variances = error**2
    total = variances.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = total**2 / np.sum(variances**2 / freedom)
    if exchanged:
        summed = batches.sum(axis=1)
        apart = (batches**2).sum()
        total = total * (summed**2).sum() / apart
    return np.asarray(np.sqrt(total)), np.asarray(freedom)


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
    options = Options(split, penalty, solver, audit, neighbours)
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
