"""Estimate the log evidence from tempered posteriors, with control variates."""

import abc
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._numerics import as_leaf, precision
from .._require import usage
from .._show import Described, bare_table, beside_plain, describe, html_table, plain_text
from .._types import AnyArray, Scalar
from ..auditing import AuditError, AuditMode, audited
from ..chains import t_quantile
from ..citing import references_of
from ..data import Integrands, Sample
from ..estimation import ARRAYS, HEADINGS, AbstractSplit, CrossFit, Estimate, estimate, with_audit
from ..families import AbstractFamily
from ..objectives import AbstractPenalty
from ..solvers import AbstractSolver, Auto, HeldOut, Problem, moves, prepare
from ._tempered import Tempered

FROM_DENSITY = "Tempered.from_logdensity(log_likelihood, log_prior, draws, temperatures) makes one."


class Evidence(eqx.Module):
    """The log evidence with control variates, and the plain estimate for comparison.

    Attributes:
        value: the log evidence.
        mcse: its Monte Carlo standard error.
        plain_value: the log evidence without control variates.
        plain_mcse: its Monte Carlo standard error.
        worth: how many times as many plain draws would be as accurate, (plain_mcse / mcse)^2.
        freedom: degrees of freedom of `mcse`, for intervals.
        plain_freedom: degrees of freedom of `plain_mcse`.
        quadrature_error: estimated error of the sum over temperatures as an integral: more temperatures
            reduce it, more draws do not. Zero where the method has no quadrature.
        temperatures: the inverse temperatures.
        shares: the contribution of each temperature to the log evidence, an `Estimate` with a row for each.
        log_likelihood: the mean log likelihood at each temperature, likewise.
        method: how the log evidence was computed from expectations.
        reason: why there is no standard error, or None.

    >>> import numpy as np, steinax as sx
    >>> t = np.linspace(0, 1, 9)
    >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
    >>> tempered = sx.Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, t)
    >>> result = sx.evidence(tempered, sx.Polynomial(2))
    >>> bool(result.worth > 100), result.log_likelihood.value.shape
    (True, (9,))
    """

    value: AnyArray
    mcse: AnyArray
    plain_value: AnyArray
    plain_mcse: AnyArray
    worth: AnyArray
    freedom: AnyArray
    plain_freedom: AnyArray
    quadrature_error: AnyArray
    temperatures: AnyArray
    shares: Estimate
    log_likelihood: Estimate
    method: str = eqx.field(static=True)
    reason: str | None = eqx.field(static=True, default=None)

    def interval(self, level: float = 0.95) -> np.ndarray:
        r"""Return the interval $\text{value} \pm t\,\text{mcse}$, widened by the error of the quadrature.

        >>> import numpy as np, steinax as sx
        >>> t = np.linspace(0, 1, 9)
        >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
        >>> sx.evidence(sx.Tempered(x, -(x[..., 0] ** 2) / 2, -x, -x, t)).interval().shape
        (2,)
        """
        return self._around(self.value, self.mcse, t_quantile(level, self.freedom))

    def plain_interval(self, level: float = 0.95) -> np.ndarray:
        """Return the interval of the estimate without control variates."""
        return self._around(
            self.plain_value, self.plain_mcse, t_quantile(level, self.plain_freedom)
        )

    def _around(self, value: AnyArray, error: AnyArray, quantile: AnyArray) -> np.ndarray:
        """Return the ends of an interval, widened by the error of the quadrature: (2,)."""
        half = quantile * error + np.nan_to_num(self.quadrature_error)
        return np.array([value - half, value + half])

    def __repr__(self) -> str:
        head, *rows = self._rows()
        table = bare_table()
        for place, heading in enumerate(head):
            table.add_column(heading, justify="left" if place == 0 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        text = plain_text(table, shutil.get_terminal_size().columns)
        return "\n".join([text, *self._below()])

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return html_table(head, rows, self._below())

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the headings and the row of the printed table."""
        numbers = (self.value, self.mcse, self.plain_value, self.plain_mcse, self.worth)
        quadrature = float(np.nan_to_num(self.quadrature_error))
        cells = beside_plain(*map(float, numbers), least=quadrature)
        return [HEADINGS[:6], ("log evidence", *cells)]

    def _below(self) -> list[str]:
        """Return the lines printed below the table."""
        description = f"{self.method}, {len(self.temperatures)} temperatures"
        if self.quadrature_error != 0:
            description += f", quadrature error about {float(self.quadrature_error):.1g}"
        lines = [description, "each temperature: .log_likelihood and .shares"]
        return lines if self.reason is None else [*lines, f"no standard error: {self.reason}"]


LOG_LIKELIHOOD = "log likelihood"


class Contribution(eqx.Module):
    """The contribution of one temperature to the log evidence: a function of expectations."""

    integrands: Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods
    share: Callable[[AnyArray], AnyArray]  # of their expectations, in the same order


class AbstractMethod(Described):
    """A method to compute the log evidence from expectations: one `contribution` per temperature.

    >>> isinstance(ThermodynamicIntegration(), AbstractMethod)
    True
    """

    power: ClassVar[
        int | None
    ]  # of the step in the error of the quadrature, None without quadrature

    @abc.abstractmethod
    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """Return the integrands at one temperature, and the contribution of their expectations.

        Args:
            values: the log likelihood of each draw.
            before: the step from the temperature below, 0 at the first.
            after: the step to the temperature above, 0 at the last.
        """


class ThermodynamicIntegration(AbstractMethod):
    r"""Thermodynamic integration of the mean log likelihood, by the corrected trapezium rule.

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
        """Return the log likelihood and its squared deviation from the plain mean as integrands."""
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
        """Return the log likelihood as the only integrand."""
        weight = (before + after) / 2
        return Contribution(
            lambda values: {LOG_LIKELIHOOD: values}, lambda means: weight * means[0]
        )


class SteppingStones(AbstractMethod):
    r"""Stepping stones: ratios of normalising constants of neighbouring temperatures, without quadrature.

    $$ \log Z = \sum_j \log \mathbb{E}_{t_j}[L^{a \Delta_j}]
       - \log \mathbb{E}_{t_{j+1}}[L^{-(1 - a) \Delta_j}] . $$

    With $a = 1/2$ each neighbour makes half of the step. With $a = 1$ all steps are made from below: that is
    the evidence of sequential Monte Carlo, whose integrands are steeper.

    Args:
        reach: $a$, the fraction of each step that is made from below.

    >>> terms = SteppingStones().contribution(np.array([[1.0, 3.0]]), 0.0, 0.5)
    >>> list(terms.integrands(np.array([[1.0, 3.0]])))
    ['step up']
    """

    reach: Scalar = eqx.field(converter=as_leaf, default=0.5)
    power: ClassVar[int | None] = None

    def __check_init__(self) -> None:
        if not 0 <= float(self.reach) <= 1:
            raise ValueError(
                f"reach={float(self.reach):g}: give a fraction of a step, from 0 to 1."
            )

    def contribution(
        self, values: Float[AnyArray, "chain draw"], before: float, after: float
    ) -> Contribution:
        """Return powers of the likelihood as integrands, divided by their largest values."""
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


type LikelihoodFunctions = Callable[[AnyArray], dict[str, AnyArray]]  # of log likelihoods


class Options(NamedTuple):
    """Options for fitting control variates, the same at every temperature."""

    split: AbstractSplit | None
    penalty: AbstractPenalty | None
    solver: AbstractSolver | None
    audit: AuditMode
    neighbours: int


def controlled_expectations(
    tempered: Tempered,
    place: int,
    f: LikelihoodFunctions,
    family: AbstractFamily | None,
    options: Options,
) -> Estimate:
    """Estimate the expectations of functions of the log likelihood at one temperature.

    Args:
        tempered: the draws.
        place: the index of the temperature.
        f: the integrands.
        family: the family of control variates, or None to choose one.
        options: how they are fitted.
    """
    split, penalty, solver, audit, neighbours = options
    sample, wanted = tempered.sample(place), f(tempered.log_likelihood[place])
    if neighbours == 0:
        return estimate(
            wanted, sample, family, split=split, penalty=penalty, solver=solver, audit=audit
        )
    if family is None or split is not None or neighbours < 0:
        raise ValueError(
            f"neighbours={neighbours} goes with a family: give one, such as Polynomial(2) + "
            "KernelTranslates(), and no split; or leave neighbours out to have a family chosen."
        )
    report = audited(sample, audit)
    pool, values = _pool(tempered, place, neighbours)
    own, pooled = _integrands(wanted), _integrands(f(values))
    with precision(np.float64):
        problem, _ = prepare(pooled, pool, family, penalty, None)
        solver = Auto() if solver is None else solver
        held = _held_out(problem, sample, pool, solver)
    chosen = (describe(problem.family),) * len(own.names)
    papers = references_of(problem.family, CrossFit()) + solver.references_for(problem)
    result = Estimate.from_held_out(held, own, chosen, references=papers)
    return with_audit(result, report, audit)


def _held_out(problem: Problem, sample: Sample, pool: Sample, solver: AbstractSolver) -> HeldOut:
    """Compute the held-out residuals on the draws of one temperature, in fits to the whole pool."""
    count = len(CrossFit().boundaries(sample.chains, sample.length))
    folds = CrossFit(count * pool.chains // sample.chains).boundaries(pool.chains, pool.length)
    held = solver.crossfit(problem, folds)
    unseen = None
    if held.intercepts is not None:  # the folds of neighbours tell nothing about this mean
        shifts = moves(held.residual, held.intercepts, folds)[:count]
        unseen = ((shifts - shifts.mean(axis=0)) ** 2).sum(axis=0)
    residual = np.asarray(held.residual)[: sample.size]
    return HeldOut(residual, f"{count} folds and neighbours, {held.note}", unseen=unseen)


def _integrands(values: dict[str, AnyArray]) -> Integrands:
    """Stack the values of named integrands into one array."""
    return Integrands(np.stack(list(values.values()), axis=-1), tuple(values))


def _pool(tempered: Tempered, place: int, reach: int) -> tuple[Sample, AnyArray]:
    """Pool the draws of a temperature and its neighbours, all with the scores of that temperature.

    A fit does not need draws from the target: any draws tell about f, and every member of the family has
    mean zero under the density of the scores.
    """
    t, length = tempered.temperatures[place], tempered.draws[place].shape[1]
    near = range(max(place - reach, 0), min(place + reach, len(tempered) - 1) + 1)
    order = [place, *(i for i in near if i != place)]

    def joined(arrays: tuple[AnyArray, ...]) -> np.ndarray:
        return np.concatenate([_in_chains(np.asarray(arrays[i]), length) for i in order])

    prior, likelihood = joined(tempered.prior_scores), joined(tempered.likelihood_scores)
    pool = Sample(joined(tempered.draws), prior + t * likelihood, tempered.names)
    return pool, joined(tuple(values[..., None] for values in tempered.log_likelihood))[..., 0]


def _in_chains(draws: np.ndarray, length: int) -> np.ndarray:
    """Cut draws into chains of the given length, and drop the remaining draws."""
    flat = draws.reshape(-1, draws.shape[-1])
    count = len(flat) // length
    return flat[: count * length].reshape(count, length, draws.shape[-1])


def quadrature_error(
    tempered: Tempered, method: AbstractMethod, means: Sequence[AnyArray]
) -> float:
    r"""Estimate the error of the quadrature by Richardson extrapolation: $|Q_h - Q_{2h}| / (2^p - 1)$.

    $Q_{2h}$ uses every other temperature, and $p$ is the method's power. The result is zero where the
    method has no quadrature, NaN if there are too few temperatures to leave any out.

    Args:
        tempered: the draws.
        method: the method that combines expectations.
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
    """Compute the log evidence from a subset of the temperatures."""
    steps = np.r_[0.0, np.diff(tempered.temperatures[places]), 0.0]
    total = 0.0
    with precision(np.float64):
        for i, place in enumerate(places):
            terms = method.contribution(
                tempered.log_likelihood[place], float(steps[i]), float(steps[i + 1])
            )
            total += float(terms.share(jnp.asarray(means[place])))
    return total


CURVED = 0.5  # error of a share beyond which its linear approximation is unreliable
TOO_CURVED = (
    "a share is a logarithm that is too far from linear within its error; give more draws or more "
    "temperatures, or use steinax.tempering.ThermodynamicIntegration()"
)


def combined_share(linear: Estimate, value: float, remainder: float) -> Estimate:
    """Combine the value of a share at the plain means, its linear part and the nonlinear remainder."""
    curved = not abs(remainder) <= CURVED + linear.mcse or not linear.mcse <= CURVED
    remainder = remainder if np.isfinite(remainder) else 0.0
    error = np.asarray(np.nan) if curved else linear.mcse
    return replace(
        linear,
        value=np.asarray(value + linear.value + remainder),
        plain_value=np.asarray(value + linear.plain_value),
        mcse=error,
        reason=TOO_CURVED if curved else linear.reason,
    )


def no_contribution(template: Estimate) -> Estimate:
    """Return the zero share of a temperature that contributes nothing."""
    zeros = {field: np.zeros_like(getattr(template, field)) for field in _ZEROS}
    return replace(template, worth=np.asarray(1.0), chosen=("nothing",), candidates=None, **zeros)


_ZEROS = ("value", "mcse", "batches", "plain_value", "plain_mcse", "plain_batches")


def summed(
    temperatures: AnyArray,
    shares: Sequence[Estimate],
    log_likelihood: Sequence[Estimate],
    exchanged: bool,
    quadrature: float,
    method: AbstractMethod,
) -> Evidence:
    """Sum the shares of all temperatures to the log evidence, with its standard error."""
    rows = stack_estimates(shares, temperatures)
    error, freedom = _error_of_sum(rows.mcse, rows.freedom, rows.batches, exchanged)
    plain, plain_freedom = _error_of_sum(
        rows.plain_mcse, rows.plain_freedom, rows.plain_batches, exchanged
    )
    return Evidence(
        value=np.asarray(rows.value.sum()),
        mcse=error,
        plain_value=np.asarray(rows.plain_value.sum()),
        plain_mcse=plain,
        worth=np.asarray((plain / error) ** 2),
        freedom=freedom,
        plain_freedom=plain_freedom,
        quadrature_error=np.asarray(quadrature),
        temperatures=np.asarray(temperatures),
        shares=rows,
        log_likelihood=stack_estimates(log_likelihood, temperatures),
        method=describe(method),
        reason=rows.reason,
    )


def stack_estimates(estimates: Sequence[Estimate], temperatures: AnyArray) -> Estimate:
    """Stack the estimates of all temperatures into one with a row for each."""
    arrays: dict[str, Any] = {field: _stacked(estimates, field) for field in ARRAYS}
    names = tuple(f"t = {t:.4g}" for t in temperatures)
    chosen = tuple(row.chosen[0] for row in estimates)
    reason = next((row.reason for row in estimates if row.reason is not None), None)
    texts = {"note": estimates[0].note, "reason": reason}
    papers = references_of(tuple(estimates))
    return Estimate(names=names, chosen=chosen, references=papers, **texts, **arrays)


def _stacked(estimates: Sequence[Estimate], field: str) -> np.ndarray:
    """Stack one array of all estimates; batches are cut to the smallest number of them."""
    arrays = [np.asarray(getattr(row, field)) for row in estimates]
    fewest = min(len(array) for array in arrays) if arrays[0].ndim else 0
    return np.stack([array[:fewest] if array.ndim else array for array in arrays], axis=-1)


def _error_of_sum(
    error: AnyArray, freedom: AnyArray, batches: AnyArray, exchanged: bool
) -> tuple[AnyArray, AnyArray]:
    """Compute the standard error of a sum, and its Welch-Satterthwaite degrees of freedom."""
    variances = error**2
    total = variances.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = total**2 / np.sum(variances**2 / freedom)
    if exchanged:
        sums = batches.sum(axis=1)
        independent = (batches**2).sum()
        total = total * (sums**2).sum() / independent
    return np.asarray(np.sqrt(total)), np.asarray(freedom)


SHARE = "share"  # the linear part of the contribution of a temperature


@usage(f"Give a Tempered and a family. {FROM_DENSITY}")
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
    r"""Estimate the log evidence $\log Z = \log \int p(x) L(x)\, dx$ with control variates.

    A method expresses $\log Z = \sum_j \varphi_j(\mathbb{E}_{t_j}[f_1], \mathbb{E}_{t_j}[f_2], \ldots)$ by
    expectations at the temperatures. The linear part of each $\varphi_j$ is one more integrand, so the
    standard error of a share accounts for the correlation of its expectations.

    Args:
        tempered: draws from the prior to the posterior, with log likelihoods and scores.
        family: the family of control variates for all temperatures; chosen from the draws by default.
        method: `SteppingStones()` by default; others in `steinax.tempering` are
            `ThermodynamicIntegration()` and `Trapezium()`.
        split: as in `estimate`, with a family.
        penalty: as in `estimate`, with a family.
        solver: as in `estimate`, with a family.
        neighbours: how many temperatures on each side contribute their draws to the fit, with a family:
            each control variate is then fitted to more draws than are averaged.
        exchanged: whether the chains exchanged states, as those of parallel tempering do: their errors
            are then correlated, and the standard error comes from batches of draws made at the same
            time. Otherwise the temperatures are taken to be independent.
        audit: as in `estimate`, at each temperature.

    >>> import numpy as np, steinax as sx
    >>> t = np.linspace(0, 1, 9)  # prior and likelihood are standard normal: Z is 1 / sqrt(4 pi)
    >>> x = np.random.default_rng(0).normal(size=(9, 200, 1)) / np.sqrt(1 + t)[:, None, None]
    >>> log_likelihood = -(x[..., 0] ** 2) / 2 - np.log(2 * np.pi) / 2
    >>> result = sx.evidence(sx.Tempered(x, log_likelihood, -x, -x, t), sx.Polynomial(4))
    >>> bool(abs(result.value + np.log(4 * np.pi) / 2) < 1e-4)
    True
    """
    if not isinstance(tempered, Tempered):
        raise TypeError(
            f"the evidence needs draws from the prior to the posterior, and this is a "
            f"{type(tempered).__name__}: give a steinax.Tempered. {FROM_DENSITY}"
        )
    if not isinstance(method, AbstractMethod):
        raise TypeError(
            f"method={describe(method)} is not a method: give one of steinax.tempering, such as "
            "ThermodynamicIntegration(), or leave it out for SteppingStones()."
        )
    options = Options(split, penalty, solver, audit, neighbours)
    steps = np.r_[0.0, np.diff(tempered.temperatures), 0.0]
    terms = [
        method.contribution(values, *map(float, steps[place : place + 2]))
        for place, values in enumerate(tempered.log_likelihood)
    ]
    results = [
        _at_temperature(tempered, place, family, term, options) for place, term in enumerate(terms)
    ]
    log_likelihood = [result.estimate[LOG_LIKELIHOOD] for result in results]
    quadrature = quadrature_error(tempered, method, [result.means for result in results])
    shares = [result.share for result in results]
    return summed(tempered.temperatures, shares, log_likelihood, exchanged, quadrature, method)


class TemperatureResult(NamedTuple):
    """The estimates at one temperature, and its share of the log evidence."""

    estimate: Estimate
    share: Estimate
    means: AnyArray  # expectations of the method's integrands, with control variates


def _at_temperature(
    tempered: Tempered,
    place: int,
    family: AbstractFamily | None,
    terms: Contribution,
    options: Options,
) -> TemperatureResult:
    """Estimate the expectations at one temperature, and its share of the log evidence."""
    values = tempered.log_likelihood[place]
    named = terms.integrands(values)
    plain = np.array([np.mean(integrand) for integrand in named.values()])
    value, slope = _linear(terms, plain)

    def f(values: AnyArray) -> dict[str, AnyArray]:
        named = terms.integrands(values)
        if not named:  # the last of the stepping stones contributes nothing
            return {LOG_LIKELIHOOD: values}
        centred = np.stack(list(named.values()), axis=-1) - plain
        return {LOG_LIKELIHOOD: values, **named, SHARE: centred @ slope}

    try:
        result = controlled_expectations(tempered, place, f, family, options)
    except AuditError as error:
        error.add_note(
            f"The error occurred at inverse temperature {tempered.temperatures[place]:g}."
        )
        raise
    means = np.array([result[name].value for name in named])
    if not named:
        return TemperatureResult(result, no_contribution(result[LOG_LIKELIHOOD]), means)
    with precision(np.float64), np.errstate(invalid="ignore", divide="ignore"):
        remainder = float(terms.share(jnp.asarray(means)) - value - slope @ (means - plain))
    return TemperatureResult(result, combined_share(result[SHARE], value, remainder), means)


def _linear(terms: Contribution, plain: np.ndarray) -> tuple[float, np.ndarray]:
    """Compute the share at the plain means, and its gradient there."""
    with precision(np.float64):
        value, slope = jax.value_and_grad(terms.share)(jnp.asarray(plain, jnp.float64))
    return float(value), np.asarray(slope)
