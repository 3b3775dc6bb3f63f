"""One replicate of a run that is stopped: every look, and where each rule stops.

Looks are as frequent as the rule permits, which is when it is most tempted to stop too early. They begin at
40 draws, before the rule believes an error bar, for the sake of the mutant.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import steinax as sx
from steinax.stopping import GROWTH, Look, reason_to_stop, with_errors_of_two

from ._stopped import CHAINS, TARGETS, Run

FAMILIES = {"degree 2": lambda: sx.Polynomial(2), "automatic": lambda: None}
CELLS = tuple(f"{target} | {family}" for target in TARGETS for family in FAMILIES)
TOLERANCES = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)  # posterior standard deviations
FIRST = 10  # draws of a chain at the first look
NEVER = -1


def replicate(cell: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """The replicates of these numbers.

    Returns:
        `draws` (replicate, look); `value`, `low` and `high` (replicate, look, k) of fixed numbers of draws;
        for each tolerance the look at which the rule and the mutant stop, `rule` and `first`
        (replicate, tolerance), or `NEVER`, and the intervals of the rule, `rule_low` and `rule_high`
        (replicate, tolerance, k); `truth` (replicate, k), NaN where it is the mean of all replicates.
    """
    name, family = cell.split(" | ")
    target, rows = TARGETS[name], []
    for number in numbers:
        run = target.run(int(number))
        looks = looks_at(run, FAMILIES[family]())
        truth = np.full(len(run.f), np.nan) if target.truth is None else target.truth
        rows.append(stops(looks) | {"truth": truth})
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}


def looks_at(run: Run, family: sx.families.AbstractFamily | None) -> list[Look]:
    """Every look at a run to its end; their tolerances are posterior standard deviations."""
    looks, length = [], float(FIRST)
    while length <= run.draws.shape[1]:
        part = np.s_[:, : int(length)]
        sample = sx.Sample(run.draws[part], run.scores[part])
        f = {name: values[part] for name, values in run.f.items()}
        found = sx.estimate(f, sample, family, audit="off")
        half = np.ptp(found.interval(), axis=-1) / 2
        sd = np.asarray(found.plain_mcse) * np.sqrt(found.plain_ess)
        looks.append(Look(CHAINS * int(length), 0.0, found, half, sd))
        length = max(length * GROWTH, length + 1)
    return looks


def stops(looks: Sequence[Look]) -> dict[str, np.ndarray]:
    """Where the rule of the package stops, and a mutant that stops at the first small error bar."""
    intervals = np.array([look.estimate.interval() for look in looks])
    found = {
        "draws": np.array([look.draws for look in looks]),
        "value": np.array([look.estimate.value for look in looks]),
        "low": intervals[..., 0],
        "high": intervals[..., 1],
    }
    rows = []
    for tolerance in TOLERANCES:
        made = [replace(look, tolerance=tolerance * look.tolerance) for look in looks]
        ends = (i for i in range(len(made)) if reason_to_stop(made[: i + 1]) == "precise")
        small = (i for i, look in enumerate(made) if np.all(look.ratio <= 1))
        row = {"rule": next(ends, NEVER), "first": next(small, NEVER)}
        reported = with_errors_of_two(made[: row["rule"] + 1]) if row["rule"] > 0 else None
        none = np.full(intervals.shape[1:], np.nan)
        interval = none if reported is None else reported.interval()
        rows.append(row | {"rule_low": interval[:, 0], "rule_high": interval[:, 1]})
    return found | {key: np.array([row[key] for row in rows]) for key in rows[0]}
