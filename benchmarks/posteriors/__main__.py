import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from .._pinned import ROOT
from .._provenance import provenance
from . import __doc__ as description
from ._data import REFERENCE, folder, starts
from ._measure import saved
from ._page import page
from ._peers import PEERS
from ._pictures import draw
from ._rows import Row, make_row, merge, read_rows, write_rows


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors", description=description
    )
    parser.add_argument(
        "--n", type=int, nargs="+", default=[100, 200, 1000], help="draws in a block"
    )
    parser.add_argument("--blocks", type=int, default=20, help="blocks; of 1,000 draws always 10")
    parser.add_argument("--only", nargs="+", default=list(PEERS), choices=PEERS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    cache = Path.home() / ".cache" / "steinax" / "posteriors"
    parser.add_argument("--cache", type=Path, default=cache, help="where estimates are kept")
    parser.add_argument(
        "--keep", action="store_true", help="use kept estimates even of another source of steinax"
    )
    given = parser.parse_args()
    try:
        for n in given.n:
            starts(n, given.blocks)
    except ValueError as error:
        parser.error(str(error))
    return given


def rows_of(name: str, given: argparse.Namespace) -> list[Row]:
    """The rows of one posterior; the references are estimates too, and are made first."""
    references = saved(name, REFERENCE, given)
    return [make_row(name, n, saved(name, n, given), references) for n in given.n]


def main() -> None:
    """Measure what is asked for, and write all that is known: also of earlier runs into `--out`."""
    given = arguments()
    folder()
    results, failed = given.out / "posteriors.json", []
    about = {"command": shlex.join(["python", "-m", "benchmarks.posteriors", *sys.argv[1:]])}
    about |= provenance()
    for name in given.only:
        try:
            new = rows_of(name, given)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        write_rows(results, merge(read_rows(results), new), about)
    if rows := read_rows(results):
        draw(rows, given.out)
        (given.out / "posteriors.md").write_text(
            page(rows, about | {"failed": failed}), encoding="utf-8"
        )
    if failed:
        raise SystemExit(f"no new results for {', '.join(failed)}: see the messages above.")


if __name__ == "__main__":
    main()
