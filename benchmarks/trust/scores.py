"""Which wrong scores the audit refuses and names, which right ones it refuses, and what can hide."""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import steinax as sx

from .._markdown import about, figure, origin, table, write
from .._pinned import ROOT
from ._refused import SIZES, posterior_case, right_case, wrong_case
from ._scored import MISTAKES, NAMED, RIGHT, chains, gaussian
from ._wrong import WRONG

SHAPE, RHO = (4, 250, 10), 0.5
DRAWS = (200, 1000)
ERRORS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)


def verdict(x: np.ndarray, score: np.ndarray) -> str:
    """The kind of the first fatal finding, or `passed`."""
    report = sx.audit(sx.Sample(x, score))
    return "passed" if report.passed else report.fatal[0].kind


def named(target: str, mistake: str, seeds: int) -> dict:
    """How often a gross mistake is refused, and refused by its name."""
    make, (kind, change) = NAMED[target], MISTAKES[mistake]
    found = [verdict(*change(*make(chains(s, SHAPE, RHO)))) for s in range(seeds)]
    return {
        "table": "mistakes",
        "target": target,
        "mistake": mistake,
        "seeds": seeds,
        "refused": seeds - found.count("passed"),
        "named": found.count(kind),
    }


def boundary(name: str, seeds: int) -> dict:
    """A density that does not vanish at the boundary of its support."""
    found = []
    for seed in range(seeds):
        x = getattr(np.random.default_rng(seed), name)(size=(4, 250, 10))
        found.append(verdict(x, -1.0 * (name == "exponential") * np.ones_like(x)))
    return {
        "table": "mistakes",
        "target": name,
        "mistake": "a boundary left in place",
        "seeds": seeds,
        "refused": seeds - found.count("passed"),
        "named": found.count("boundary"),
    }


def cases(seeds: int, folder: Path, workers: int) -> list[dict]:
    """Gross and subtle mistakes, right samples, and errors that hide: a row each, on several processes."""
    tasks: list[tuple[Callable[..., dict], tuple]] = [
        (wrong_case, (name, n, seeds)) for n in DRAWS for name in WRONG
    ]
    tasks += [(named, (target, mistake, seeds)) for target in NAMED for mistake in MISTAKES]
    tasks += [(boundary, (name, seeds)) for name in ("exponential", "uniform")]
    tasks += [(limit, (s, size, seeds // 2)) for s in ("constant", "linear") for size in ERRORS]
    tasks += [(right_case, (target, seeds)) for target in RIGHT]
    tasks += [
        (posterior_case, (path.parent.name, size))
        for size in SIZES
        for path in sorted(folder.glob("*/scores.npz"))
    ]
    fresh = multiprocessing.get_context("spawn")  # jax does not survive a fork
    with ProcessPoolExecutor(workers, mp_context=fresh) as pool:
        rows = [one.result() for one in [pool.submit(work, *given) for work, given in tasks]]
    return _together(rows)


def _together(rows: list[dict]) -> list[dict]:
    """The rows of posteriors added up for each size of blocks."""
    found: dict[str, dict] = {}
    for row in rows:
        key = row["target"] if row["table"] == "right" else str(row)
        if key in found:
            for field in ("audits", "refused", "refused_with"):
                found[key][field] += row[field]
        else:
            found[key] = dict(row)
    return list(found.values())


def limit(sort: str, size: float, seeds: int) -> dict:
    """Scores with an error of one size: how many pass, and the smallest limit printed for those."""
    passed, least = 0, np.inf
    for seed in range(seeds):
        x, score = gaussian(chains(seed, SHAPE, RHO))
        wrong = score * (1 - size) if sort == "linear" else score + size * _along(x)
        report = sx.audit(sx.Sample(x, wrong))
        if report.passed:
            passed += 1
            shown = report.limit_squares if sort == "linear" else report.limit[:1]
            least = min(least, float(shown.min()))
    row = {"table": "limit", "error": sort, "bias": size, "seeds": seeds, "passed": passed}
    return row | {"least": least if passed else None}


def _along(x: np.ndarray) -> np.ndarray:
    """The constant error that shifts the estimate of the first mean by one: C^-1 e_1."""
    index = np.arange(x.shape[2])
    return np.linalg.solve(0.5 ** np.abs(index[:, None] - index), np.eye(len(index))[0])


def timed() -> float:
    """Milliseconds of CPU time of an audit that passes, the median of 50."""
    sample, taken = sx.Sample(*gaussian(chains(0, SHAPE, RHO))), []
    for _ in range(50):
        start = time.process_time()
        sx.audit(sample)
        taken.append(time.process_time() - start)
    return 1e3 * float(np.median(taken))


def page(rows: list[dict], where: dict) -> str:
    """All of `scores.md`."""
    wrong = [row for row in rows if row["table"] == "mistakes"]
    right = [row for row in rows if row["table"] == "right"]
    subtle = [row for row in rows if row["table"] == "subtle"]
    hidden = [row for row in rows if row["table"] == "limit"]
    audits, refused, refused_with = (
        sum(row[key] for row in right) for key in ("audits", "refused", "refused_with")
    )
    low = min(row["named"] / row["seeds"] for row in wrong)
    under = [row for row in hidden if row["passed"] and row["least"] < row["bias"]]
    parts = [
        "# Wrong scores",
        f"Of {audits:,} right samples {refused} are refused, and {refused_with} of the same samples with "
        f"their log densities. The audit refuses and names every gross mistake "
        f"in at least {low:.0%} of the seeds, at 4 x 250 draws with AR(1) 0.5 in ten dimensions. "
        f"An error passed that was larger than the limit printed next to it in {len(under)} of "
        f"{len(hidden)} rows. An audit takes {figure(where['milliseconds'])} ms.",
        "## Mistakes",
        table(
            ("target", "mistake", "seeds", "refused", "named"),
            [
                [str(row[k]) for k in ("target", "mistake", "seeds", "refused", "named")]
                for row in wrong
            ],
        ),
        "The bias of a missing Jacobian is that of one standard deviation of the parameter: it is found "
        "where the parameter varies by a half or more, as here.",
        *_subtle(subtle),
        "## Right scores",
        "4 x 250 draws (AR(1) 0.5, 0.9 and -0.5), 4 x 50 (0.9 and 0) and 1 x 1,000; estimates of all "
        "columns, their squares and products. Refused by the audit, or because an estimate contradicts the "
        "plain average, without and with log densities.",
        table(
            ("target", "samples", "refused", "with log densities"),
            [
                [row["target"], f"{row['audits']:,}", str(row["refused"]), str(row["refused_with"])]
                for row in right
            ],
        ),
        "## What can hide",
        "A Gaussian target. A constant error shifts the estimate of the first mean by the bias given, in "
        "standard deviations; a linear one that of every square, in variances.",
        table(
            ("error", "bias", "seeds", "passed", "least limit printed for those"),
            [
                [
                    row["error"],
                    figure(row["bias"]),
                    str(row["seeds"]),
                    str(row["passed"]),
                    _least(row),
                ]
                for row in hidden
            ],
        ),
        origin(where),
    ]
    return "\n\n".join(parts) + "\n"


def _subtle(rows: list[dict]) -> list[str]:
    """The part of the page on mistakes that move estimates by a few plain standard errors."""
    sums = {
        key: sum(row[key] for row in rows)
        for key in ("apart", "apart_refused", "biased", "biased_refused")
    }
    columns = ("mistake", "draws", "bias", "refused", "with log densities")
    return [
        "## Subtle mistakes",
        "Four dimensions, chains of AR(1) 0.3; estimates of all columns, their squares and the products of "
        "neighbours by `Polynomial(2)`. The bias is that of the worst of them, in standard errors of its "
        f"plain average (the median over {rows[0]['seeds']} seeds). Without log densities "
        f"{sums['apart_refused']:,} of the {sums['apart']:,} samples are refused whose estimate lies more "
        f"than five plain standard errors from the plain average; with them {sums['biased_refused']:,} of "
        f"the {sums['biased']:,} whose bias exceeds two.",
        table(
            columns,
            [
                [
                    row["mistake"],
                    f"{row['draws']:,}",
                    f"{row['bias']:.1f}",
                    str(row["refused"]),
                    str(row["refused_with"]),
                ]
                for row in rows
            ],
        ),
        "Log densities say nothing of a truncation: scores and energies agree, and the draws end at a wall. "
        "Clipped and rounded gradients that move estimates by less than two standard errors are not refused.",
    ]


def _least(row: dict) -> str:
    return figure(row["least"]) if row["passed"] else ""


def main() -> None:
    """Measure everything, and write `scores.json` and `scores.md`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust.scores", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="for each mistake and each setting")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    given = parser.parse_args()
    if "STEINAX_DATA" not in os.environ:
        raise SystemExit("STEINAX_DATA is not set: point it at the folder that holds posteriordb/.")
    where = about("benchmarks.trust.scores") | {"milliseconds": timed()}
    folder = Path(os.environ["STEINAX_DATA"], "posteriordb")
    rows = cases(given.seeds, folder, given.workers)
    text = page(rows, where)
    write(given.out, "scores", text, where, rows)
    print(text)


if __name__ == "__main__":
    main()
