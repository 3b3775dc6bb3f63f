import argparse
import importlib
from pathlib import Path

from .._markdown import report
from . import __doc__ as description
from ._growth import draw

COMMANDS = ("streaming", "farm", "integrands", "devices", "dimensions")
PICTURE = "picture"


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=description)
    parser.add_argument("command", choices=[*COMMANDS, PICTURE])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--megabytes", type=float, help="of draws on disk, for `streaming`")
    parser.add_argument("--only", help="the part to measure, such as `growth`; all by default")
    parser.add_argument("--rounds", type=int, help="how often each time is taken")
    parser.add_argument("--out", type=Path, help="a folder for the table and its JSON")
    given = parser.parse_args()
    if given.command == PICTURE:
        draw(given.out or Path("docs", "benchmarks"))
        return
    settings = {
        name: getattr(given, name)
        for name in ("megabytes", "only", "rounds")
        if getattr(given, name) is not None
    }
    rows = importlib.import_module(f".{given.command}", __package__).measure(**settings)
    report(rows, "benchmarks.scale", f"scale_{given.command}", given.json, given.out)


if __name__ == "__main__":  # the workers of a cluster import this file too
    main()
