"""What the commands on posteriordb's models share: their options, and a table that grows model by model."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from ..._command import cache_folder
from ..._markdown import about, known
from ..._pinned import ROOT
from .._data import folder
from ._registry import MODELS


def tabulated(
    module: str,
    description: str | None,
    name: str,
    row_of: Callable[[dict], dict],
    page: Callable[[list[dict], dict], str],
    replicates: int = 20,
    cache: str = "chains",
) -> None:
    """Measure the models that are asked for, and write all that is known: also of earlier runs into `--out`.

    Args:
        module: that was run.
        description: of the command.
        name: of the two files of results.
        row_of: measures a model, given its name, the number of replicates and the folder of chains.
        page: makes Markdown of all rows and the origin of the last ones.
        replicates: of each model, if nothing else is asked for.
        cache: the name of the folder of chains.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--replicates", type=int, default=replicates, help="samples of a model")
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=MODELS, metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--cache", type=Path, default=cache_folder(cache), help="chains are kept")
    given = parser.parse_args()
    folder()
    told = about(module) | {"numpyro": version("numpyro")}
    rows, failed = {row["model"]: row for row in known(given.out, name)}, []
    given.out.mkdir(parents=True, exist_ok=True)
    for model in given.only:
        settings = {
            "name": model,
            "replicates": given.replicates,
            "cache": str(given.cache.resolve()),
        }
        try:
            rows[model] = row_of(settings) | {"provenance": told}
        except subprocess.CalledProcessError as error:
            print(f"{model} failed: {error}", file=sys.stderr, flush=True)
            failed.append(model)
            continue
        ordered = [rows[one] for one in MODELS if one in rows]
        text = json.dumps({**told, "rows": ordered}, indent=1) + "\n"
        (given.out / f"{name}.json").write_text(text, encoding="utf-8")
        (given.out / f"{name}.md").write_text(page(ordered, told), encoding="utf-8")
    if failed:
        raise SystemExit(f"no new results for {', '.join(failed)}: see the messages above.")


def earlier(rows: Sequence[dict], told: dict) -> list[str]:
    """Say which rows are from runs with another source, machine or sampler than the last one."""
    notes = []
    for key in ("source", "cpu", "numpyro"):
        found = sorted({str(row["provenance"][key]) for row in rows})
        if found != [str(told[key])]:
            notes.append(
                f"**Rows are from earlier runs too, with another {key}: {', '.join(found)}.**"
            )
    return notes
