import argparse
import json
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from ..._command import cache_folder
from ..._markdown import known
from ..._pinned import ROOT, run
from ..._provenance import provenance
from .._data import folder
from . import __doc__ as description
from ._page import page
from ._registry import MODELS


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.posteriors.chains", description=description
    )
    parser.add_argument("--replicates", type=int, default=20, help="samples of 4 x 250 draws")
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=MODELS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    kept = cache_folder("chains")
    parser.add_argument("--cache", type=Path, default=kept, help="where chains are kept")
    return parser.parse_args()


def row_of(name: str, given: argparse.Namespace, about: dict) -> dict:
    """Check and sample in one process, estimate in another: each starts afresh, on one core."""
    settings = {
        "name": name,
        "replicates": given.replicates,
        "cache": str(given.cache.resolve()),
    }
    (checked,) = run("posteriors.chains._run", settings)
    (row,) = run("posteriors.chains._estimates", settings)
    print(name, {key: row[key] for key in ("gain", "calibration", "seconds")}, flush=True)
    return checked | row | {"provenance": about}


def main() -> None:
    """Run what is asked for, and write all that is known: also of earlier runs into `--out`."""
    given = arguments()
    folder()
    about = {"command": shlex.join(["python", "-m", "benchmarks.posteriors.chains", *sys.argv[1:]])}
    about |= provenance() | {"numpyro": version("numpyro")}
    results, failed = given.out / "chains.json", []
    rows = {row["model"]: row for row in known(given.out, "chains")}
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.only:
        try:
            rows[name] = row_of(name, given, about)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: {error}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        ordered = [rows[name] for name in MODELS if name in rows]
        results.write_text(
            json.dumps({**about, "rows": ordered}, indent=1) + "\n", encoding="utf-8"
        )
        (given.out / "chains.md").write_text(page(ordered, about), encoding="utf-8")
    if failed:
        raise SystemExit(f"no new results for {', '.join(failed)}: see the messages above.")


if __name__ == "__main__":
    main()
