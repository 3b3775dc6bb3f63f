import argparse
import sys

from .._markdown import rows_table
from . import __doc__ as description
from ._running import KILLED, judged
from ._table import MUTANTS, Mutant


def main() -> int:
    """Run the mutants that were asked for and print what became of them; 1 where one survives."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=description)
    parser.add_argument("names", nargs="*", help="words in the names of mutants; all by default")
    parser.add_argument("--list", action="store_true", help="print the mutants and their tests")
    parser.add_argument("--workers", type=int, default=1, help="mutants that run side by side")
    given = parser.parse_args()
    chosen = [one for one in MUTANTS if not given.names or any(w in one.name for w in given.names)]
    if not chosen:
        parser.error(f"no mutant has {' or '.join(given.names)} in its name: see --list.")
    if given.list:
        print(rows_table([_row(one, tests="<br>".join(one.tests)) for one in chosen]))
        return 0
    rows, seconds = [], 0.0
    for mutant, outcome in judged(chosen, given.workers):
        print(f"{outcome.verdict}: {mutant.name} ({outcome.seconds:.1f} s)", flush=True)
        rows.append(_row(mutant, verdict=outcome.verdict, tests=outcome.told))
        seconds += outcome.seconds
    killed = sum(row["verdict"] == KILLED for row in rows)
    took = f"{seconds:.0f} s of a CPU"
    print(f"\n{rows_table(rows)}\n\n{killed} of {len(rows)} mutants were killed, in {took}.")
    return int(killed < len(rows))


def _row(mutant: Mutant, **more: str) -> dict[str, str]:
    return {"mutant": mutant.name, "file": mutant.path, **more}


if __name__ == "__main__":
    sys.exit(main())
