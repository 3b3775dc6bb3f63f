"""What training points add to 100 draws, on the 22 posteriors of posteriordb.

`python -m benchmarks.posteriors.training` estimates from blocks of 100 of the reference draws, alone and with
the 900 draws beside them as training points, and writes `training.json` and `training.md`. Estimates are kept
in the folder of `benchmarks.posteriors`, whose references it uses.
"""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

from .._markdown import known
from .._pinned import ROOT
from .._provenance import provenance
from ._data import REFERENCE, folder
from ._measure import saved
from ._peers import PEERS
from ._rows import Row, make_row
from ._score import pooled
from ._text import both, shown, table

N = 100
HEAD = """# Training points

What `steinax.estimate(f, sample)` gains from {n} draws when it is also fitted to {training} training points:
{count} posteriors of posteriordb, {blocks} blocks each. The training points are further reference draws,
in the place of warm-up draws; [warm-up draws as training points](warmup.md) has those of real chains.

| | {n} draws alone | with training points |
| --- | --- | --- |
| median gain, means / squares | {median_alone} | {median_trained} |
| lowest quartile | {quartile_alone} | {quartile_trained} |
| least gain of any integrand | {least_alone} | {least_trained} |
| calibration, all together | {calibration_alone} | {calibration_trained} |
| 95% intervals that hold | {held_alone} | {held_trained} |
"""
METHOD = """
Gains, references, calibration and coverage are those of [the page on posteriors](posteriors.md): a block of
{n} draws and its training points are one block of {reference} reference draws, and the references are from
the other blocks. A calibration above 1 says that error bars are too short.{refused}

Command: `{command}`, {date}, {cpu}, source {source}.
"""
COLUMNS = (
    *("posterior", "d", "gain alone", "gain trained", "least alone", "least trained"),
    *("calibration alone", "calibration trained", "95% held trained", "CPU s"),
)


def rows_of(name: str, given: argparse.Namespace) -> dict[str, Row]:
    """The rows of one posterior: the draws alone, and with training points."""
    references = saved(name, REFERENCE, given)
    return {
        kind: make_row(name, N, saved(name, N, given, kind == "trained"), references)
        for kind in ("alone", "trained")
    }


def figures(rows: list[dict[str, Row]], kind: str) -> dict[str, str]:
    """The figures of all posteriors together."""
    of = [row[kind] for row in rows]
    gains = {sort: np.array([row["gain"][sort] for row in of]) for sort in ("means", "squares")}
    counts = [row["count"] for row in of]
    held = float(np.average([row["coverage"] for row in of], weights=counts))
    return {
        f"median_{kind}": both([float(np.median(gain)) for gain in gains.values()]),
        f"quartile_{kind}": both([float(np.quantile(gain, 0.25)) for gain in gains.values()]),
        f"least_{kind}": shown(min(row["worst_gain"] for row in of)),
        f"calibration_{kind}": f"{pooled([row['calibration'] for row in of], counts):.2f}",
        f"held_{kind}": f"{held:.1%}",
    }


def refusals(rows: list[dict[str, Row]]) -> str:
    """Say how many estimates the audit refuses; empty if none."""
    found = [
        f"{row[kind]['refused']} of {row[kind]['posterior']} {kind}"
        for row in rows
        for kind in ("alone", "trained")
        if row[kind]["refused"]
    ]
    return (
        f" The audit refuses estimates that contradict the plain average ({', '.join(found)}): these blocks "
        "of draws missed a long tail. They are scored like the others."
        if found
        else ""
    )


def page(rows: list[dict[str, Row]], about: dict) -> str:
    """All of `training.md`."""
    head = HEAD.format(
        n=N,
        training=REFERENCE - N,
        count=len(rows),
        blocks=rows[0]["trained"]["blocks"],
        **figures(rows, "alone"),
        **figures(rows, "trained"),
    )
    lines = []
    for row in rows:
        alone, trained = row["alone"], row["trained"]
        line = [alone["posterior"], str(alone["dim"])]
        line += [both(list(one["gain"].values())) for one in (alone, trained)]
        line += [shown(one["worst_gain"]) for one in (alone, trained)]
        line += [f"{one['calibration']:.2f}" for one in (alone, trained)]
        lines.append([*line, f"{trained['coverage']:.1%}", f"{trained['seconds']:.1f}"])
    method = METHOD.format(n=N, reference=REFERENCE, refused=refusals(rows), **about)
    return "\n".join([head, table(COLUMNS, lines), method])


def main() -> None:
    """Measure what is asked for, and write all that is known: also of earlier runs into `--out`."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors.training", description=__doc__
    )
    parser.add_argument("--blocks", type=int, default=20, help="blocks of 100 draws")
    parser.add_argument("--only", nargs="+", default=list(PEERS), choices=PEERS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    cache = Path.home() / ".cache" / "steinax" / "posteriors"
    parser.add_argument("--cache", type=Path, default=cache, help="where estimates are kept")
    parser.add_argument("--keep", action="store_true", help="use kept estimates of another source")
    given = parser.parse_args()
    folder()
    command = shlex.join(["python", "-m", "benchmarks.posteriors.training", *sys.argv[1:]])
    about, failed = {"command": command} | provenance(), []
    results = given.out / "training.json"
    rows = {row["alone"]["posterior"]: row for row in known(given.out, "training")}
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        try:
            rows[name] = rows_of(name, given)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        print(name, *(rows[name][kind]["gain"] for kind in ("alone", "trained")), flush=True)
        ordered = [rows[one] for one in PEERS if one in rows]
        text = json.dumps({**about, "rows": ordered}, indent=1) + "\n"
        results.write_text(text, encoding="utf-8")
        (given.out / "training.md").write_text(page(ordered, about), encoding="utf-8")
    if failed:
        raise SystemExit(f"no new results for {', '.join(failed)}: see the messages above.")


if __name__ == "__main__":
    main()
