"""What the commands that print one table share: their options, and what is done with the rows."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from ._markdown import report


def parser_of(
    module: str, description: str | None, commands: Iterable[str]
) -> argparse.ArgumentParser:
    """A parser with the options of every command; more may be added."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("command", choices=list(commands))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, help="how often each time is taken")
    parser.add_argument("--only", help="the part to measure, or a word in its name; all by default")
    parser.add_argument("--out", type=Path, help="a folder for the table and its JSON")
    return parser


def cache_folder(name: str) -> Path:
    """A folder in `$STEINAX_CACHE`, or in the user's cache directory."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("STEINAX_CACHE") or Path(home) / "steinax") / name


def settings_of(given: argparse.Namespace, *names: str) -> dict:
    """Those of some options that were given."""
    return {name: getattr(given, name) for name in names if getattr(given, name) is not None}


def show(rows: list[dict], module: str, given: argparse.Namespace) -> None:
    """Print the rows, and write them to the folder if there is one."""
    name = f"{module.rpartition('.')[2]}_{given.command}"
    report(rows, module, name, given.json, given.out)
