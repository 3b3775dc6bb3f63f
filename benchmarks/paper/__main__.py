"""`python -m benchmarks.paper NAME [--reps 20] [--quick]`, or `--all`: measure, then write the pages."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from .._markdown import about, origin, table
from .._pinned import ROOT
from ._chains import KEPT, folder
from ._experiment import EXPERIMENTS, FEWER, REPETITIONS, Claim, Report, experiment
from ._run import kept_rows, run
from ._tuning import at_the_ends

QUICK_REPETITIONS = 2


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    made.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXPERIMENTS))
    made.add_argument("--all", action="store_true", help="every experiment")
    made.add_argument("--quick", action="store_true", help="small sizes, few repetitions")
    made.add_argument("--reps", type=int, help="repetitions of each cell: 20 or 10, 2 if quick")
    made.add_argument("--out", type=Path, help="folder of pages: docs/paper, or none if quick")
    made.add_argument("--results", type=Path, help="where results are kept")
    made.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="0: what is kept")
    return made


def reported(name: str, given: argparse.Namespace) -> Report:
    """Write the page of an experiment from the results that are kept."""
    which = experiment(name)
    rows = kept_rows(name, which.cells(given.quick), _repetitions(name, given), given.results)
    if not rows:
        raise SystemExit(f"nothing of {name} is kept in {given.results}: give it --workers.")
    pages = given.out or given.results / "pages"
    pages.mkdir(parents=True, exist_ok=True)
    report = which.report(rows, pages)
    where = about("benchmarks.paper") | {"source": ", ".join(sorted({row.source for row in rows}))}
    page = "\n\n".join(
        [report.page.strip(), at_the_ends(rows), claims_table(report.claims), origin(where)]
    )
    (pages / f"{name}.md").write_text(page + "\n", encoding="utf-8")
    raw = (json.dumps(asdict(row) | {"error": row.error.tolist()}) for row in rows)
    (pages / f"{name}.jsonl").write_text("\n".join(raw) + "\n", encoding="utf-8")
    return report


def _repetitions(name: str, given: argparse.Namespace) -> int:
    return given.reps or (QUICK_REPETITIONS if given.quick else FEWER.get(name, REPETITIONS))


def claims_table(claims: tuple[Claim, ...]) -> str:
    """What the rows bear out, and what not."""
    rows = [[one.statement, "yes" if one.holds else "**no**", one.evidence] for one in claims]
    return table(("claim", "holds", "evidence"), rows)


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; 1 if a claim fails that must hold at any size."""
    made = parser()
    given = made.parse_args(arguments)
    names = EXPERIMENTS if given.all else tuple(given.names)
    if not names or set(names) - set(EXPERIMENTS):
        made.error(f"give names of experiments ({', '.join(EXPERIMENTS)}), or --all.")
    given.results = given.results or (folder() / "quick" if given.quick else folder())
    given.out = given.out or (None if given.quick else ROOT / "docs" / "paper")
    os.environ[KEPT] = str(given.results.resolve())
    if given.workers:
        wanted = {
            name: (experiment(name).cells(given.quick), _repetitions(name, given)) for name in names
        }
        run(wanted, given.results, given.workers, given.quick)
    failed = 0
    for name in names:
        for claim in reported(name, given).claims:
            failed += claim.at_any_size and not claim.holds
            print(f"{name}: {'yes' if claim.holds else 'NO '} {claim.statement} {claim.evidence}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
