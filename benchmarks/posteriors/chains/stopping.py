"""Draws until all means are known to a hundredth of a posterior sd: controlled, and by plain averages.

`python -m benchmarks.posteriors.chains.stopping` samples posteriordb's models by NUTS, 4 x 250 warm-up draws
and 4 x 1,000 draws, gives them to `steinax.until` ten draws of a chain at a time, and writes
`draws_needed.json` and `draws_needed.md`.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import steinax as sx
import steinax.stopping
from steinax.data import with_warmup

from ..._markdown import figure, table
from ..._pinned import run
from .._data import folder
from ._command import earlier, tabulated
from ._estimates import Constants, part
from ._registry import MODELS
from ._run import CHAINS, sampled, store, stored
from .warmup import finite, sample_of

DRAWS, WARMUP, KEY, BATCH = 1000, 250, 13, 10
TOLERANCE = 0.01
HEAD = """# Draws until the means are precise

How many draws, of four chains together, it takes until the 95% interval of every mean is within {tolerance}
posterior standard deviations either way: {count} models of posteriordb by NUTS, with the warm-up as training
points, {replicates} runs of each, stopped by `steinax.until` or after {most:,} draws. *Plain* is the number
that plain averages would need, extrapolated from their errors at the stop.

The median over the models is **{controlled}** draws instead of **{plain}**.
"""
METHOD = """
Figures are medians over the runs. *Stopped* is the share of the runs that were precise within {most:,} draws;
for the others the number is a lower bound. Looks are as frequent as the rule permits, as with an expensive
model. *Off* is the largest difference of a mean from that of the other runs, in posterior standard
deviations: about the tolerance or less, if the intervals are right. Where it is far less, the run had to wait
for 100 effective draws or for an R-hat of 1.1.

Command: `{command}`, {date}, {cpu}, source {source}.
"""
COLUMNS = ("model", "d", "draws", "stopped", "looks", "plain", "ratio", "off")


def batches(sample: sx.Sample, warmup: sx.Sample) -> Iterator[sx.Sample]:
    """The draws as they come, ten of each chain; the first with the warm-up."""
    yield with_warmup(sample[:, :BATCH], warmup)
    for start in range(BATCH, sample.length, BATCH):
        yield sample[:, start : start + BATCH]


def measure(name: str, replicates: int, cache: str) -> list[dict]:
    """The row of one model."""
    steinax.stopping.SHARE = np.inf  # looks take no time, beside an expensive model
    paths = [Path(cache) / f"{name}_{kind}_{replicates}.npz" for kind in ("warmup", "draws")]
    if not all(path.exists() for path in paths):
        found = sampled(MODELS[name], folder(), KEY, CHAINS * replicates, DRAWS, WARMUP, keep=True)
        for path, chains in zip(paths, found, strict=True):
            assert chains is not None
            store(path, chains)
    early, late = (stored(path) for path in paths)
    constants = Constants(late.values.mean(axis=(0, 1)), late.values.std(axis=(0, 1)))
    names, rows = late.value_names.tolist(), []
    for i in range(replicates):
        chains = slice(CHAINS * i, CHAINS * (i + 1))
        sample = sample_of(part(late, chains, slice(None)), constants)
        warmup = sample_of(finite(part(early, chains, slice(None))), constants)
        given = batches(sample, warmup)
        rows.append(sx.until(given, names, TOLERANCE, audit="off"))
    values = np.array([one.estimate.value for one in rows])
    others = (values.sum(axis=0) - values) / max(replicates - 1, 1)
    return [
        {
            "model": name,
            "dim": late.draws.shape[2],
            "replicates": replicates,
            "draws": float(np.median([one.looks[-1].draws for one in rows])),
            "stopped": float(np.mean([one.precise for one in rows])),
            "looks": float(np.median([len(one.looks) for one in rows])),
            "plain": float(np.median([one.plain_draws.max() for one in rows])),
            "off": float(np.max(np.abs(values - others) / constants.sd)),
            "reasons": [one.reason for one in rows],
        }
    ]


def page(rows: list[dict], about: dict) -> str:
    """All of `draws_needed.md`."""
    lines = [
        [
            row["model"],
            str(row["dim"]),
            f"{row['draws']:,.0f}",
            f"{row['stopped']:.0%}",
            f"{row['looks']:.0f}",
            figure(row["plain"]),
            figure(row["plain"] / row["draws"]),
            figure(row["off"]),
        ]
        for row in rows
    ]
    most = CHAINS * DRAWS
    head = HEAD.format(
        tolerance=TOLERANCE,
        count=len(rows),
        replicates=rows[0]["replicates"],
        most=most,
        controlled=figure(float(np.median([row["draws"] for row in rows]))),
        plain=figure(float(np.median([row["plain"] for row in rows]))),
    )
    missing = ", ".join(sorted(set(MODELS) - {row["model"] for row in rows}))
    left_out = (
        f"\nNot measured, of the models that the command has: {missing}.\n" if missing else ""
    )
    method = left_out + METHOD.format(most=most, **about)
    return "\n".join([head, table(COLUMNS, lines), method, *earlier(rows, about)])


def row_of(settings: dict) -> dict:
    """Measure a model in a process of its own."""
    (row,) = run("posteriors.chains.stopping", settings)
    print(settings["name"], {key: row[key] for key in ("draws", "plain", "off")}, flush=True)
    return row


if __name__ == "__main__":
    tabulated(
        *("benchmarks.posteriors.chains.stopping", __doc__, "draws_needed", row_of, page),
        replicates=5,
        cache="stopping",
    )
