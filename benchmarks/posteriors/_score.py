r"""How good estimates and their error bars are, given references: functions of arrays, no more.

$E$ are the estimates and $P$ the plain averages from several blocks of draws, $R$ the references,
$s$ and $s_R$ the standard errors of $E$ and $R$. The gain of an integrand is

$$\text{mean } (P - R)^2 / \text{mean } (E - R)^2,$$

means over the blocks, and the calibration the root mean square of $z = (E - R) / \sqrt{s^2 + s_R^2}$:
1 for error bars that hold, 2 for those that are half as long as they should be. As both
differences contain the error of $R$, the gain is understated where $R$ is not much better than $E$.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import steinax as sx

NORMAL_95 = 1.959963984540054
ROUNDING = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Trials:
    """Arrays of shape (block, k): estimates from several blocks of draws, and what they should be."""

    value: np.ndarray
    mcse: np.ndarray
    plain: np.ndarray
    reference: np.ndarray
    reference_mcse: np.ndarray

    def __post_init__(self) -> None:
        shapes = {name: np.shape(array) for name, array in vars(self).items()}
        if len(set(shapes.values())) != 1 or len(self.value.shape) != 2:
            raise ValueError(f"all arrays must have one shape, (block, k), but they have {shapes}.")
        for name in ("value", "plain", "reference"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise ValueError(
                    f"`{name}` holds numbers that are not finite: no score is fair to it."
                )


def against_the_others(found: Sequence[sx.Estimate]) -> Trials:
    """Each estimate against the average of all the others, its own error counted."""
    value, mcse, plain = (
        np.array([getattr(one, name) for one in found]) for name in ("value", "mcse", "plain_value")
    )
    others = (value.sum(axis=0) - value) / (len(found) - 1)
    error = np.sqrt((mcse**2).sum(axis=0) - mcse**2) / (len(found) - 1)
    return Trials(value, mcse, plain, others, error)


@dataclass(frozen=True)
class Score:
    """The figures of one set of trials.

    Attributes:
        gains: of every integrand, by name; NaN where plain averages have no error to begin with.
        gain: the geometric mean of the gains of every group of integrands.
        worst: the name of the integrand that gains least.
        worst_gain: its gain.
        calibration: the root mean square of all standardised errors.
        coverage: the share of 95% intervals that hold the reference.
        count: how many standardised errors there were.
        no_error: how many estimates came without a standard error; they are in neither of these.
    """

    gains: dict[str, float]
    gain: dict[str, float]
    worst: str
    worst_gain: float
    calibration: float
    coverage: float
    count: int
    no_error: int


def score(trials: Trials, names: Sequence[str], groups: Mapping[str, Sequence[int]]) -> Score:
    """Every figure; `groups` says which integrands belong together, by their positions."""
    each, z = gains(trials), standardised(trials)
    worst = "" if np.all(np.isnan(each)) else names[int(np.nanargmin(each))]
    return Score(
        gains=dict(zip(names, each.tolist(), strict=True)),
        gain={group: geometric_mean(each[list(members)]) for group, members in groups.items()},
        worst=worst,
        worst_gain=float(np.fmin.reduce(each)),
        calibration=calibration(z),
        coverage=coverage(z),
        count=int(np.sum(~np.isnan(z))),
        no_error=int(np.sum(np.isnan(trials.mcse))),
    )


def gains(trials: Trials) -> np.ndarray:
    """The gain of each integrand; errors below rounding are taken for rounding, 0 / 0 for NaN."""
    floor = (ROUNDING * np.abs(trials.reference).max(axis=0)) ** 2 + np.finfo(np.float64).tiny
    plain = np.mean((trials.plain - trials.reference) ** 2, axis=0)
    better = np.mean((trials.value - trials.reference) ** 2, axis=0)
    return np.where(np.fmax(plain, better) > floor, plain / np.maximum(better, floor), np.nan)


def standardised(trials: Trials) -> np.ndarray:
    """Errors over their standard errors, (block, k); NaN where neither is above rounding."""
    error = trials.value - trials.reference
    scale = np.hypot(trials.mcse, trials.reference_mcse)
    nothing = (scale == 0) & (np.abs(error) <= ROUNDING * np.abs(trials.reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(nothing, np.nan, error / scale)


def geometric_mean(gains: np.ndarray) -> float:
    """Of all gains that are numbers; a gain of 0 makes it 0."""
    known = gains[~np.isnan(gains)]
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(known)))) if known.size else float("nan")


def calibration(z: np.ndarray) -> float:
    """The root mean square of standardised errors, those that are NaN left out."""
    known = z[~np.isnan(z)]
    return float(np.sqrt(np.mean(known**2))) if known.size else float("nan")


def coverage(z: np.ndarray) -> float:
    """The share of standardised errors that a 95% interval allows."""
    known = z[~np.isnan(z)]
    return float(np.mean(np.abs(known) <= NORMAL_95)) if known.size else float("nan")


def average(figures: Sequence[float], counts: Sequence[int]) -> float:
    """The average of figures that stand for `counts` trials each; those for none are left out."""
    kept = [(figure, count) for figure, count in zip(figures, counts, strict=True) if count]
    if not kept:
        return float("nan")
    return float(np.average([figure for figure, _ in kept], weights=[count for _, count in kept]))


def pooled(calibrations: Sequence[float], counts: Sequence[int]) -> float:
    """The calibration of all standardised errors together, from those of sets of them."""
    return float(np.sqrt(average([one**2 for one in calibrations], counts)))
