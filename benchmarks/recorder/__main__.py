"""Measure the recorder: `python -m benchmarks.recorder` writes `recorder.json` and `recorder.md`.

Sonar is read from `$STEINAX_DATA/sonar`. `--quick` takes one replicate and fewer times.
"""

import argparse
from pathlib import Path

from .._markdown import about, figure, known, origin, table, write
from .._pinned import ROOT, run
from . import KINDS, LONG
from ._models import MODELS
from ._samplers import SAMPLERS

HEAD = """# Recorded leapfrog states

What the leapfrog states of the warm-up, kept by `steinax.record` (one in eight), add to 4 x 25 draws by NUTS
after 4 x 150 warm-up draws: the gain, mean squared error of plain averages over that of estimates, geometric
mean over quantities, from {replicates} replicates. *Warm-up* is `steinax.data.with_warmup`.
"""
METHOD = """
References are longer runs, 4 x {long} draws trained on their warm-up; *reference* is their standard error
over the spread of the last kind of estimate: where it is not small, gains are understated. *Calibration* is
the root mean square of errors over standard errors. Five draws of each chain, between the recorded states
and the draws, are left out. *Slower* is the median ratio of CPU times of the same draws with and without
recording, of every evaluation and of one in eight. The epidemic is an SIR equation solved by diffrax, with
five quantities; those of Sonar are ten coefficients and ten probabilities. A model may be measured by itself,
with `--only`: each row names its source, and the last run was

"""
COLUMNS = (
    *("model", "sampler", "d", *(f"gain {kind}" for kind in KINDS), "calibration"),
    *(
        "leapfrog states",
        "warm-up draws",
        "reference",
        "slower, all",
        "slower, one in eight",
        "source",
    ),
)


def page(rows: list[dict], told: dict) -> str:
    """All of `recorder.md`."""
    lines = [
        [
            *(row["model"], row["sampler"], str(row["dim"])),
            *(figure(row["gain"][kind]) for kind in KINDS),
            " / ".join(f"{row['calibration'][kind]:.2f}" for kind in KINDS),
            *(f"{row[name]:,.0f}" for name in ("leapfrog", "warm-up")),
            f"{row['reference error']:.2f}",
            *(f"{100 * row['slowdown'][every]:.0f}%" for every in ("1", "8")),
            row["source"],
        ]
        for row in rows
    ]
    head = HEAD.format(replicates=rows[0]["replicates"])
    return f"{head}\n{table(COLUMNS, lines)}\n{METHOD.format(long=LONG)}{origin(told)}\n"


def main() -> None:
    """Measure every model with every sampler, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorder", description=__doc__)
    parser.add_argument("--replicates", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=15, help="pairs of times")
    parser.add_argument("--quick", action="store_true", help="one replicate, three times")
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=MODELS, metavar="MODEL")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    settings = {"replicates": given.replicates, "repeats": given.repeats}
    if given.quick:
        settings = {"replicates": 1, "repeats": 3}
    told = about("benchmarks.recorder")
    rows = {(row["model"], row["sampler"]): row for row in known(given.out, "recorder")}
    for model in given.only:
        for sampler in SAMPLERS:
            (row,) = run("recorder", {"model": model, "sampler": sampler} | settings)
            rows[model, sampler] = row | {"source": told["source"]}
            print(model, sampler, row["gain"], row["slowdown"], flush=True)
            every = [(model, sampler) for model in MODELS for sampler in SAMPLERS]
            ordered = [rows[pair] for pair in every if pair in rows]
            write(given.out, "recorder", page(ordered, told), told, ordered)


if __name__ == "__main__":
    main()
