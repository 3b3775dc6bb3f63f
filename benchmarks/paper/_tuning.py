"""Hyper-parameters, chosen on draws that are not used again: for exact solves, and for SGD by SGD."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import steinax as sx

from ._experiment import Row

FOLDS, SWEEPS = 20, 2
FITTED = 0.8  # of the draws, if SGD is tuned; it is judged on the others
DAMPINGS = (1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1.0, 1e-1, 1e-2)  # the grid of the supplement
LENGTH_SCALES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the median heuristic's
STRENGTHS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2, 1e4)
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # of Adam
GRIDS = {
    "damping": DAMPINGS,
    "length_scale": LENGTH_SCALES,
    "strength": STRENGTHS,
    "rate": RATES,
}
EVERY = {"value": 1}  # which values of the grids are tried: see `coarse`
type Make = Callable[["Hyper"], sx.families.AbstractFamily]
type Pilot = tuple[sx.data.Integrands, sx.Sample]


@dataclass(frozen=True)
class Hyper:
    """The damping, the length-scale over the median heuristic's, the strength of the penalty; SGD's rate."""

    damping: float = 1e-2
    length_scale: float = 1.0
    strength: float = 1e-6
    rate: float = 1e-2

    def penalties(
        self, family: sx.families.AbstractFamily, ridge: bool = False
    ) -> list[sx.objectives.AbstractPenalty]:
        """One for each term: on the coefficients themselves, or on kernels in their own norm."""
        return [
            sx.Ridge(self.strength)
            if ridge or isinstance(term, sx.Polynomial)
            else sx.NativeNorm(self.strength)
            for term in family.terms
        ]


def cross_validated(
    make: Make,
    pilots: Sequence[Pilot],
    fixed: Sequence[str] = (),
    independent: bool = True,
    folds: int | None = None,
) -> Hyper:
    """The hyper-parameters of least held-out variance of the exact solve, over all pilots and integrands.

    Independent draws are left out one by one, and chains in 20 stretches, so that what is chosen suits as
    many draws as are fitted to in the end: with five folds, as in the paper, it would suit four fifths.

    Args:
        make: the family with some hyper-parameters.
        pilots: the draws to try them on.
        fixed: the hyper-parameters that keep their default values.
        independent: whether the draws are.
        folds: another number of folds.
    """

    def left(hyper: Hyper) -> float:
        family, total = make(hyper), 0.0
        for wanted, sample in pilots:
            found = sx.cross_validate(
                wanted,
                sample,
                family,
                penalties=[hyper.penalties(family)],
                folds=folds or (sample.size if independent else FOLDS),
                solver=sx.Exact(),
            )
            total += _mean_log(found.left)
        return total

    grids = _grids(make, fixed)
    return _swept(Hyper(), grids, left, SWEEPS if len(grids) > 1 else 1)


def tuned_for_sgd(
    make: Make,
    pilots: Sequence[Pilot],
    start: Hyper,
    epochs: int,
    fixed: Sequence[str] = (),
) -> Hyper:
    """The hyper-parameters and the learning rate of least held-out variance of SGD itself.

    All rates are tried with the hyper-parameters of the start. With others, the best so far and its two
    neighbours are tried, and then the next ones for as long as the best is the last that was tried. A quick
    run tries every fourth rate each time, on the first draws only: jax then compiles once.

    Args:
        make: the family with some hyper-parameters.
        pilots: the draws to try them on.
        start: those of the exact solve, from which the search starts.
        epochs: of SGD.
        fixed: the hyper-parameters that stay as they are at the start.
    """
    rates: dict[Hyper, float] = {}
    lowest = np.inf, RATES[len(RATES) // 2]  # what is left at best, and at which rate

    def left(hyper: Hyper) -> float:
        nonlocal lowest
        near = RATES.index(lowest[1]) if rates else None
        remaining, rates[hyper] = _over_rates(make(hyper), hyper, pilots, epochs, near)
        lowest = min(lowest, (remaining, rates[hyper]))
        return remaining

    grids = dict(reversed(_grids(make, fixed).items()))  # the penalty first
    best = _swept(start, grids, left, 1)
    return replace(best, rate=rates[best])


def with_rate_for(make: Make, whole: Sequence[Pilot], hyper: Hyper, epochs: int) -> Hyper:
    """The same hyper-parameters with the rate of least held-out variance on other draws.

    A rate does not carry over from pilots that are fewer, or in fewer dimensions, than what is fitted to
    later: tried are rates from a tenth of theirs to three times theirs.
    """
    place = RATES.index(hyper.rate)
    rates = RATES[max(place - 2, 0) : place + 2]
    return replace(hyper, rate=_by_sgd(make(hyper), hyper, whole, epochs, rates)[1])


def _over_rates(
    family: sx.families.AbstractFamily,
    hyper: Hyper,
    given: Sequence[Pilot],
    epochs: int,
    near: int | None,
) -> tuple[float, float]:
    """What SGD leaves with the best rate, and that rate: of all, or of those around a place on the grid."""
    if EVERY["value"] > 1:
        return _by_sgd(family, hyper, given[:1], epochs, RATES[:: EVERY["value"]])
    first, last = (0, len(RATES)) if near is None else (max(near - 1, 0), near + 2)
    best = _by_sgd(family, hyper, given, epochs, RATES[first:last])
    while near is not None:
        place = RATES.index(best[1])
        if place == first > 0:
            first, more = first - 1, first - 1
        elif place == last - 1 < len(RATES) - 1:
            last, more = last + 1, last
        else:
            break
        best = min(best, _by_sgd(family, hyper, given, epochs, RATES[more : more + 1]))
    return best


def _by_sgd(
    family: sx.families.AbstractFamily,
    hyper: Hyper,
    given: Sequence[Pilot],
    epochs: int,
    rates: tuple[float, ...],
) -> tuple[float, float]:
    """The sum over draws of what SGD leaves on a fifth of them, and the best of the rates."""
    solver = sx.Stochastic(epochs=epochs, precondition=False, rates=rates)
    total, chosen = 0.0, []
    for wanted, sample in given:
        cut = round(FITTED * sample.length)
        values = np.asarray(wanted.values)
        part = sx.Sample(sample.draws[:, :cut], sample.scores[:, :cut])
        fitted = {name: values[:, :cut, i] for i, name in enumerate(wanted.names)}
        penalty = hyper.penalties(family, ridge=True)
        control = sx.fit(fitted, part, family, penalty=penalty, solver=solver)
        residual = values[:, cut:] - control(sample.draws[:, cut:], sample.scores[:, cut:])
        total += _mean_log(residual.var(axis=(0, 1)) / values.var(axis=(0, 1)))
        assert control.training is not None
        chosen.append(rates[int(control.training.chosen)])
    mean = float(np.mean(np.log(chosen)))
    return total, min(rates, key=lambda rate: abs(np.log(rate) - mean))


def coarse() -> None:
    """Try every fourth value of the grids from now on, in this process: for a quick run."""
    EVERY["value"] = 4


def at_the_ends(rows: Sequence[Row]) -> str:
    """Say which hyper-parameters are at an end of their grid, where others might be better."""
    cells = {json.dumps(row.cell, sort_keys=True): row for row in rows if "strength" in row.extra}
    total = Counter(row.cell["method"] for row in cells.values())
    ends: dict[str, Counter[str]] = {}
    for row in cells.values():
        family, _, solver = (method := row.cell["method"]).rpartition(", ")
        names = ["strength"] if family == "polynomial" else ["damping", "length_scale", "strength"]
        for name in [*names, *(["rate"] if solver.startswith("SGD") else [])]:
            if (value := row.extra[name]) in (GRIDS[name][0], GRIDS[name][-1]):
                ends.setdefault(method, Counter())[f"{name.replace('_', '-')} {value:g}"] += 1
    if not ends:
        return "No hyper-parameter is at an end of its grid."
    said = [
        f"{method}: {', '.join(f'{value} in {count}' for value, count in found.items())} of {total[method]}"
        for method, found in ends.items()
    ]
    return (
        "Hyper-parameters at an end of their grid, so perhaps not the best, in how many of a method's cells. "
        f"{'; '.join(said)}."
    )


def _grids(make: Make, fixed: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """The hyper-parameters that a family has and that are not fixed, and the values to try."""
    names = ["strength"]
    if any(isinstance(term, sx.KernelTranslates) for term in make(Hyper()).terms):
        names = ["length_scale", "damping", "strength"]
    return {name: GRIDS[name][:: EVERY["value"]] for name in names if name not in fixed}


def _swept(
    start: Hyper, grids: dict[str, tuple[float, ...]], left: Callable[[Hyper], float], sweeps: int
) -> Hyper:
    """Choose one hyper-parameter after the other, the best of its grid with the others fixed."""
    known: dict[Hyper, float] = {}

    def judged(hyper: Hyper) -> float:
        if hyper not in known:
            known[hyper] = left(hyper)
        return known[hyper]

    best = start
    for _ in range(sweeps):
        for field, grid in grids.items():
            best = min((replace(best, **{field: value}) for value in grid), key=judged)
    return best


def _mean_log(left: np.ndarray) -> float:
    """The mean over integrands of the logarithm of what is left."""
    return float(np.log(np.where(np.isfinite(left), np.fmax(left, 1e-99), np.inf)).mean())
