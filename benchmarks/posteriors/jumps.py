"""Probabilities and quantiles on the 22 posteriors of posteriordb, from 1,000 draws.

`python -m benchmarks.posteriors.jumps` estimates the probability that each unconstrained parameter exceeds
its median, and its 5% and 95% quantiles, from ten blocks of 1,000 reference draws, and writes `jumps.json`
and `jumps.md`. *Before* are the same indicators with control variates that have no kinks.
"""

import argparse
from pathlib import Path

import numpy as np

import steinax as sx

from .._markdown import about, figure, known, origin, table, write
from .._pinned import ROOT, run
from ._data import REFERENCE, TOTAL, folder, load
from ._score import geometric_mean

LEVELS = (0.05, 0.95)
HEAD = """# Probabilities and quantiles

What jumps gain from 1,000 draws of each of {count} posteriors of posteriordb, with control variates that have
kinks (*now*) and without (*before*): the probability that a parameter exceeds its median, by
`estimate(lambda x: x > medians, sample)`, and its 5% and 95% quantiles, by `weigh(sample, Polynomial(2))`.
**Gain** is the mean squared error of plain averages and quantiles over that of estimates, in the geometric
mean over parameters.

| | before | now | ratio |
| --- | --- | --- | --- |
| median gain, probabilities | {before_p} | {now_p} | {ratio_p} |
| median gain, quantiles | {before_q} | {now_q} | {ratio_q} |
| least gain of any parameter | {before_least} | {now_least} | |
| calibration, all together | {before_calibration} | {now_calibration} | |

"""
METHOD = """
Ten blocks of 1,000 reference draws each, all unconstrained parameters. The reference of a block is the
average of the estimates with kinks from the nine other blocks. *Calibration* is the root mean square of
errors over standard errors, of probabilities and quantiles; above 1, error bars are too short.

"""


def measure(name: str) -> list[dict]:
    """The row of one posterior."""
    posterior = load(name)
    medians = np.median(posterior.u, axis=0)
    found: dict[str, list[np.ndarray]] = {}
    for start in range(0, TOTAL, REFERENCE):
        rows = slice(start, start + REFERENCE)
        for key, value in _block(posterior.u[rows], posterior.score[rows], medians).items():
            found.setdefault(key, []).append(value)
    arrays = {key: np.stack(values) for key, values in found.items()}
    count = TOTAL // REFERENCE
    reference = (arrays["now"].sum(axis=0) - arrays["now"]) / (count - 1)
    dim, row = len(medians), {"posterior": name, "dim": len(medians)}
    plain = np.mean((arrays["plain"] - reference) ** 2, axis=0)
    for kind in ("before", "now"):
        error = arrays[kind] - reference
        gain = plain / np.mean(error**2, axis=0)
        spread = np.hypot(
            arrays[f"{kind}_mcse"], arrays["now_mcse"].mean(axis=0) / np.sqrt(count - 1)
        )
        row[kind] = {
            "probabilities": geometric_mean(gain[:dim]),
            "quantiles": geometric_mean(gain[dim:]),
            "least": float(gain.min()),
            "calibration": float(np.sqrt(np.nanmean((error / spread) ** 2))),
        }
    return [row]


def _block(u: np.ndarray, score: np.ndarray, medians: np.ndarray) -> dict[str, np.ndarray]:
    """Estimates of the probabilities, and then of the quantiles, with their errors."""
    sample = sx.Sample(u, score)
    above = {"p": sample.draws > medians}
    # weights, even if they are all equal, keep integrands as they are
    weighted = sx.Sample(u, score, log_weights=np.zeros((1, len(u))))
    events = {
        "before": sx.estimate(above, sample, audit="off"),
        "now": sx.estimate({"p": lambda x: x > medians}, sample, audit="off"),
    }
    quantiles = {
        kind: sx.weigh(draws, sx.Polynomial(2), audit="off").quantile("x", LEVELS)
        for kind, draws in (("before", weighted), ("now", sample))
    }
    found = {}
    for kind in ("before", "now"):
        both = (events[kind], quantiles[kind])
        found[kind] = np.concatenate([each.value for each in both])
        found[f"{kind}_mcse"] = np.concatenate([each.mcse for each in both])
    plain = (events["now"].plain_value, quantiles["now"].plain_value)
    return found | {"plain": np.concatenate(plain)}


def page(rows: list[dict], told: dict) -> str:
    """All of `jumps.md`."""
    figures: dict[str, str] = {"count": str(len(rows))}
    for letter, kind in (("p", "probabilities"), ("q", "quantiles")):
        medians = [float(np.median([row[by][kind] for row in rows])) for by in ("before", "now")]
        ratio = float(np.median([row["now"][kind] / row["before"][kind] for row in rows]))
        for name, value in zip(("before", "now", "ratio"), (*medians, ratio), strict=True):
            figures[f"{name}_{letter}"] = figure(value)
    for by in ("before", "now"):
        figures[f"{by}_least"] = figure(min(row[by]["least"] for row in rows))
        count = [row["dim"] for row in rows]
        square = np.average([row[by]["calibration"] ** 2 for row in rows], weights=count)
        figures[f"{by}_calibration"] = f"{np.sqrt(square):.2f}"
    lines = [
        [
            row["posterior"],
            str(row["dim"]),
            *(
                figure(row[by][kind])
                for kind in ("probabilities", "quantiles", "least")
                for by in ("before", "now")
            ),
            f"{row['before']['calibration']:.2f} / {row['now']['calibration']:.2f}",
        ]
        for row in rows
    ]
    columns = (
        *("posterior", "d", "probabilities before", "now", "quantiles before", "now"),
        *("least before", "now", "calibration before / now"),
    )
    return f"{HEAD.format(**figures)}{table(columns, lines)}\n{METHOD}{origin(told)}\n"


def main() -> None:
    """Measure every posterior, each in a process of its own, and write all that is known."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors.jumps", description=__doc__
    )
    names = sorted(path.name for path in folder().iterdir() if (path / "scores.npz").exists())
    parser.add_argument("--only", nargs="+", metavar="NAME", default=names)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    told = about("benchmarks.posteriors.jumps")
    rows = {row["posterior"]: row for row in known(given.out, "jumps")}
    for name in given.only:
        if rows.get(name, {}).get("source") == told["source"]:
            continue
        (row,) = run("posteriors.jumps", {"name": name})
        rows[name] = row | {"source": told["source"]}
        print(name, row["before"], row["now"], flush=True)
        ordered = [rows[each] for each in names if each in rows]
        write(given.out, "jumps", page(ordered, told), told, ordered)


if __name__ == "__main__":
    main()
