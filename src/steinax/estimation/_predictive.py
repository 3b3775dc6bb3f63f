"""Posterior predictive expectations from the conditional distribution of new data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._require import usage
from .._types import AnyArray
from ..auditing import AuditMode
from ..chains import linearised
from ..data import Integrands, Sample, check_sample, integrand_columns, integrands, refuse_graph
from ..families import AbstractFamily
from ._estimate import estimate
from ._quantiles import levels_of
from ._result import Estimate

POINTS = 9  # size of the grid on which a distribution function is inverted
ROUNDS = 6  # number of successively finer grids: the last is 8^5 times as fine as the first
# The most Newton steps from the plain quantile: each makes the error about 100 times smaller.
NEWTON = 5
NEAR = 0.1  # of the standard error: no more steps are made once the distance is smaller
WIDTH = 1e-3  # of the spread of the new data: the distance over which the slope is computed

NUMBERS = (np.ndarray, np.generic, jax.Array, float, int, str)  # no distributions
type Numbers = float | int | np.generic | Sequence[Any] | AnyArray


class Predictive:
    r"""Expectations of new data $y$, given a function from parameters to the distribution of $y$.

    Every predictive expectation is the expectation of a conditional one, $E\,u(y) = E_\theta\, E(u(y) \mid
    \theta)$. The inner expectation is a known, smooth function of the parameters, without the noise of
    simulated data: control variates reduce its variance, but not that of draws of $y$.

    Every method returns an `Estimate`, with the plain average of the same conditional expectations.

    Attributes:
        conditional: returns the distribution of new data for the parameters of one draw.
        sample: the draws and scores.
        family: the family of control variates; chosen from the draws if None.
        audit: what to do if the scores do not belong to the draws, as in `estimate`. name: the name of
            the new data, for the names of the estimates.
    """

    def __init__(
        self,
        conditional: Callable[..., Any],
        sample: Sample,
        family: AbstractFamily | None,
        audit: AuditMode,
        name: str,
    ):
        self.conditional: Callable[..., Any] = conditional
        self.sample: Sample = sample
        self.name: str = name
        self.family: AbstractFamily | None = family
        self.audit: AuditMode = audit
        self._known: dict[tuple[bytes, ...], Any] = {}
        self._mean: Estimate | None = None

    def expect(self, f: Mapping[str, Callable[[Any], ArrayLike]]) -> Estimate:
        """Estimate expectations, such as of a utility, from functions of the conditional distribution.

        Args:
            f: functions by name; each takes the distribution of the new data for one draw, and returns
                the conditional expectation: a number, or an array.

        >>> import numpy as np, steinax as sx
        >>> from scipy import stats
        >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
        >>> new = sx.predictive(lambda x: stats.norm(x[0], 1), sx.Sample(x, -x))
        >>> new.expect({"E exp(y)": lambda d: np.exp(d.mean() + d.var() / 2)}).value.round(2)
        array([2.72])
        """
        return self._estimate({name: self._values(name, function) for name, function in f.items()})

    def mean(self) -> Estimate:
        r"""Estimate the predictive means, $E_\theta\, E(y \mid \theta)$."""
        if self._mean is None:
            self._mean = self._estimate({self.name: self._values(self.name, _mean)})
        return self._mean

    def sd(self) -> Estimate:
        r"""Estimate the predictive standard deviations, by the law of total variance.

        The law is $\operatorname{Var} y = E \operatorname{Var}(y \mid \theta) + \operatorname{Var}
        E(y \mid \theta)$. An error $e$ of the predictive mean changes this by $e^2$, which is neglected.
        """
        mean = self.mean()
        within, between = self._values(self.name, _variance), self._values(self.name, _mean)
        k = len(between.names)
        square = Integrands.joined([within, between]).mapped(
            lambda v: v[..., :k] + (v[..., k:] - mean.value) ** 2, between.names
        )
        squares = self._estimate({"sd": square})
        plain = squares.plain_value - (mean.plain_value - mean.value) ** 2
        sd, plain_sd = np.sqrt(squares.value), np.sqrt(plain)
        return _changed(squares, "sd {}", (sd, 1 / (2 * sd)), (plain_sd, 1 / (2 * plain_sd)))

    @usage("Give the event by name: probability(above=0), probability(below=1), or both.")
    def probability(
        self, *, above: Numbers | None = None, below: Numbers | None = None
    ) -> Estimate:
        r"""Estimate probabilities $P(y > \text{above})$, $P(y \le \text{below})$, or of both together.

        Args:
            above: the lower limit: a number, or one for each of the new data.
            below: the upper limit: a number, or one for each of the new data.
        """
        _check_event(above, below)

        def inside(given: Any) -> Any:
            if below is None:
                return _survival(given, above)
            return given.cdf(below) - (0 if above is None else given.cdf(above))

        result = self._estimate({self.name: self._values(self.name, inside)})
        ends = np.broadcast_arrays(*(np.nan if end is None else end for end in (above, below)))
        limits = [
            np.broadcast_to(end.ravel(), len(result.names)).astype(float).tolist() for end in ends
        ]
        names = tuple(
            _event(name, *limit) for name, *limit in zip(result.names, *limits, strict=True)
        )
        return replace(result, names=names, value=np.clip(result.value, 0, 1), heavy=())

    def quantile(self, q: Numbers) -> Estimate:
        r"""Estimate predictive quantiles, at which the predictive distribution function equals $q$.

        The function $E_\theta F(y \mid \theta)$ is inverted: first its plain average, by bisection,
        then by Newton steps with control variates. The error is that of the function over its slope.

        Args:
            q: levels between 0 and 1, one or many.
        """
        levels = levels_of(q)
        place, width = self._plain_quantile(levels)
        wanted = np.repeat(levels, place.shape[-1])
        names = [f"{name} {100 * level:g}%" for level in levels for name in self._names()]
        heights, slope = self._at(place, width)
        for _ in range(NEWTON):
            if np.all(np.abs(heights.value - wanted) <= NEAR * heights.mcse):
                break
            place = place - ((heights.value - wanted) / slope).reshape(place.shape)
            heights, slope = self._at(place, width)
        value, plain = (
            place.ravel() - (np.asarray(cdf) - wanted) / slope
            for cdf in (heights.value, heights.plain_value)
        )
        quantiles = _changed(heights, "{}", (value, -1 / slope), (plain, -1 / slope))
        return replace(quantiles, names=tuple(names), heavy=())

    def lppd(self, y: Numbers) -> Estimate:
        r"""Estimate the log pointwise predictive density, $\sum_i \log E_\theta\, p(y_i \mid \theta)$.

        Its error comes from the covariance of all the expectations, by the delta method.

        Args:
            y: the data, one value for each element of the conditional distribution.
        """
        if np.asarray(y).dtype.kind not in "biuf":
            raise TypeError(
                f"the data are of type {type(y).__name__}: give the observed numbers, one for each element "
                "of the conditional distribution; the sample is known already."
            )
        log_density = self._values("log p", lambda given: _log_density(given, y))
        highest = log_density.values.max(axis=(0, 1))
        names = tuple(f"p[{i}]" for i in range(len(highest)))
        density = log_density.mapped(lambda values: np.exp(values - highest), names)
        likelihood = self._estimate({"p": density})
        total = float(highest.sum())

        def lppd(mean: Mapping[str, Any]) -> Any:
            return jnp.log(jnp.stack([mean[name] for name in names])).sum() + total

        return likelihood.derived({"lppd": lppd})

    def __repr__(self) -> str:
        return f"Predictive({self.name}, {self.sample.chains} chains x {self.sample.length} draws)"

    def _values(self, label: str, f: Callable[[Any], Any], plain: bool = False) -> Integrands:
        """Evaluate a conditional expectation on every draw, as an integrand.

        Args:
            label: the name of the integrand.
            f: a function of the conditional distribution.
            plain: whether it is for a plain average, which does not need the training points.
        """
        sample = self.sample.with_training() if plain else self.sample
        return integrands({label: self._integrand(f)}, sample)

    def _integrand(self, f: Callable[[Any], Any]) -> Callable[..., Any]:
        """Make a function of the parameters from a function of the conditional distribution."""

        @wraps(self.conditional)
        def evaluate(*draw: Any, **variables: Any) -> Any:
            return f(self._given(draw, variables))

        return evaluate

    def _given(self, draw: tuple[Any, ...], variables: dict[str, Any]) -> Any:
        """Return the conditional distribution, cached for NumPy values: scipy is slow to construct them."""
        given = (*draw, *variables.values())
        if not all(isinstance(value, np.ndarray | np.generic) for value in given):
            return self._conditional(draw, variables)
        key = tuple(value.tobytes() for value in given)
        if key not in self._known:
            self._known[key] = self._conditional(draw, variables)
        return self._known[key]

    def _conditional(self, draw: tuple[Any, ...], variables: dict[str, Any]) -> Any:
        conditional = self.conditional(*draw, **variables)
        refuse_graph(self.name, conditional)
        if conditional is None or isinstance(conditional, NUMBERS):
            raise TypeError(
                f"the function of `predictive` gives {'nothing' if conditional is None else 'numbers'}: let "
                "it give the conditional distribution of the new data, such as scipy.stats.norm(mu, sigma). "
                "For the mean of a function use `estimate`."
            )
        return conditional

    def _estimate(self, f: dict[str, Integrands]) -> Estimate:
        wanted = Integrands.joined(list(f.values()))
        return estimate(wanted, self.sample, self.family, audit=self.audit)

    def _average(self, values: np.ndarray) -> np.ndarray:
        """Compute plain averages over the draws, with their importance weights if they have any, (k,)."""
        return linearised(values, self.sample.weights).mean(axis=(0, 1))

    def _names(self) -> tuple[str, ...]:
        return self._cdf(np.zeros(()), self.name, True).names

    def _plain_quantile(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute plain quantiles, and the distance over which to compute slopes there, (level, k)."""
        low, high, spread = self._bracket(levels)
        for _ in range(ROUNDS):
            grid = low + (high - low) * np.linspace(0, 1, POINTS)[:, None, None]
            height = self._average(self._cdf(grid, plain=True).values).reshape(grid.shape)
            cell = np.clip((height < levels[:, None]).sum(axis=0), 1, POINTS - 1)[None]
            low = np.take_along_axis(grid, cell - 1, axis=0)[0]
            high = np.take_along_axis(grid, cell, axis=0)[0]
        return (low + high) / 2, np.broadcast_to(WIDTH * spread, low.shape)

    def _bracket(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute bounds of each quantile, (level, k), and the spread of the data, (k,).

        For distributions that have quantiles, such as scipy's, the bounds are the least and the largest of
        these; for others they are those of Cantelli's inequality.
        """
        if not self._values("ppf", lambda given: 1.0 * hasattr(given, "ppf"), True).values.all():
            mean, within = (self._values("y", moment, True).values for moment in (_mean, _variance))
            centre = self._average(mean)
            sd = np.sqrt(self._average(within + (mean - centre) ** 2))
            odds = np.sqrt(levels / (1 - levels))[:, None]
            return centre - sd / odds, centre + sd * odds, sd
        column = np.concatenate([levels, [0.25, 0.75]])[:, None]
        ppf = self._values("q", lambda given: given.ppf(column), True).values
        shape = (len(column), -1)
        low, high = (extreme(ppf, axis=(0, 1)).reshape(shape) for extreme in (np.min, np.max))
        quartiles = self._average(ppf).reshape(shape)[-2:]
        spread = quartiles[1] - quartiles[0]
        return low[:-2] - WIDTH * spread, high[:-2] + WIDTH * spread, spread

    def _at(self, place: np.ndarray, width: np.ndarray) -> tuple[Estimate, np.ndarray]:
        """Estimate the distribution functions at some points, and compute their plain slopes, flat."""
        around = np.stack([place - width, place, place + width])
        heights = self._cdf(around)
        low, _, high = np.split(heights.values, 3, axis=-1)
        slope = self._average(high - low) / (2 * width.ravel())
        names = tuple(f"F[{i}]" for i in range(place.size))
        middle = heights.mapped(lambda values: np.split(values, 3, axis=-1)[1], names)
        return self._estimate({"F": middle}), slope

    def _cdf(self, y: np.ndarray, label: str = "F", plain: bool = False) -> Integrands:
        def height(given: Any) -> Any:
            if _is_discrete(given):
                raise ValueError(
                    "quantiles of counts are whole numbers, without an error bar: use probability(below=...) "
                    "at the numbers that you are interested in."
                )
            return given.cdf(y)

        return self._values(label, height, plain)


def predictive(
    conditional: Callable[..., Any],
    sample: Sample,
    family: AbstractFamily | None = None,
    *,
    name: str = "y",
    audit: AuditMode = "raise",
) -> Predictive:
    r"""Prepare posterior predictive means, standard deviations, probabilities, quantiles and lppd.

    Control variates do not help with simulated data, because their noise does not depend on the
    parameters. Instead, give the conditional distribution of new data: its expectations are computed
    exactly before they are averaged over the draws.

    Args:
        conditional: a function of the model's variables by name, or of the whole draw `x`, as in `estimate`.
            It returns the distribution of new data for one draw: of scipy.stats, of NumPyro, or any object
            that has those of the methods `mean()`, `var()`, `cdf(y)`, and `logpdf(y)` or `logpmf(y)` that
            are used. Its parameters may be arrays, with an element for each of the new data.
        sample: the draws and scores.
        family: the family of control variates; chosen from the draws by default.
        name: the name of the new data, for the names of the estimates.
        audit: what to do if the scores do not belong to the draws, as in `estimate`.

    >>> import numpy as np, steinax as sx
    >>> from scipy import stats
    >>> x = np.random.default_rng(0).normal(size=(4, 250, 1))
    >>> new = sx.predictive(lambda x: stats.norm(x[0], 1), sx.Sample(x, -x))
    >>> bool(abs(new.sd().value[0] - np.sqrt(2)) < 1e-6)
    True
    >>> new.probability(above=2).names
    ('P(y > 2)',)
    """
    if not callable(conditional):
        raise TypeError(
            f"the conditional distribution is of type {type(conditional).__name__}: give a function of the "
            "parameters first, such as lambda mu, sigma: stats.norm(mu, sigma), and then the sample."
        )
    check_sample(sample)
    new = Predictive(conditional, sample, family, audit, name)
    # on one draw, so that its errors are raised here
    integrand_columns({name: new._integrand(lambda given: 0.0)}, sample.with_training())
    return new


def _check_event(above: Numbers | None, below: Numbers | None) -> None:
    """Refuse events without limits, and those whose lower limit is not below the upper one."""
    if above is None and below is None:
        raise ValueError("no event: give above=, below=, or both, such as above=0.")
    if above is None or below is None:
        return
    low, high = (np.ravel(end) for end in np.broadcast_arrays(above, below))
    empty = low >= high
    if empty.any():
        low, high = (f"{end[empty.argmax()]:g}" for end in (low, high))
        tails = f"; for the two tails use 1 - probability(above={high}, below={low}).value"
        raise ValueError(
            f"above={low} is not less than below={high}, and no number is between them: give above= less "
            f"than below={tails if low != high else ''}."
        )


def _changed(
    source: Estimate,
    names: str,
    ours: tuple[np.ndarray, np.ndarray],
    plain: tuple[np.ndarray, np.ndarray],
) -> Estimate:
    """Transform an estimate by functions of single expectations, given their values and slopes."""
    (value, slope), (plain_value, plain_slope) = ours, plain
    mcse, plain_mcse = source.mcse * np.abs(slope), source.plain_mcse * np.abs(plain_slope)
    bad = [name for name, v in zip(source.names, value, strict=True) if not np.isfinite(v)]
    why = f"{', '.join(bad)} is not determined by these draws: use more" if bad else source.reason
    return replace(
        source,
        names=tuple(names.format(name) for name in source.names),
        value=value,
        mcse=mcse,
        plain_value=plain_value,
        plain_mcse=plain_mcse,
        worth=source.worth * (np.abs(plain_slope / slope)) ** 2,
        batches=source.batches * slope,
        plain_batches=source.plain_batches * plain_slope,
        reason=why,
    )


def _called(given: Any, *names: str) -> Any:
    """Return the value of the first of some methods or properties that a distribution has."""
    for name in names:
        if hasattr(given, name):
            attribute = getattr(given, name)
            return attribute() if callable(attribute) else attribute
    raise AttributeError(
        f"the conditional distribution is a {type(given).__name__} without {' or '.join(names)}: let the "
        "function give a distribution, such as one of scipy.stats, or an object with that method."
    )


def _mean(given: Any) -> Any:
    return _called(given, "mean")


def _event(name: str, low: float, high: float) -> str:
    """Name the probability of an interval, of which an end may be NaN for none."""
    if np.isnan(high):
        return f"P({name} > {low:g})"
    return f"P({'' if np.isnan(low) else f'{low:g} < '}{name} <= {high:g})"


def _variance(given: Any) -> Any:
    return _called(given, "var", "variance")


def _survival(given: Any, y: Any) -> Any:
    return given.sf(y) if hasattr(given, "sf") else 1 - given.cdf(y)


def _is_discrete(given: Any) -> bool:
    """Return whether a distribution is one of counts, by scipy's classes or NumPyro's property."""
    if hasattr(given, "is_discrete"):
        return bool(given.is_discrete)
    kinds = {kind.__name__ for kind in type(given).__mro__}
    return hasattr(given, "logpmf") and (
        not hasattr(given, "logpdf") or "DiscreteDistribution" in kinds
    )


def _log_density(given: Any, y: Any) -> Any:
    for name in ("log_prob", "logpmf" if _is_discrete(given) else "logpdf"):
        if hasattr(given, name):
            try:
                return getattr(given, name)(y)
            except ValueError as error:
                raise ValueError(
                    f"y of shape {np.shape(y)} does not go with the conditional distribution ({error}): give "
                    "one number for each of its elements."
                ) from error
    raise AttributeError(
        f"the conditional distribution is a {type(given).__name__} without a log density: give it a "
        "method logpdf, or logpmf for counts."
    )
