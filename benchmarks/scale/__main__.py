import argparse
import importlib
import json

from .._markdown import rows_table
from . import __doc__ as description

COMMANDS = ("streaming", "farm", "integrands", "devices")


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=description)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--megabytes", type=float, help="of draws on disk, for `streaming`")
    parser.add_argument("--only", help="the part to measure, such as `growth`; all by default")
    parser.add_argument("--rounds", type=int, help="how often each time is taken")
    given = parser.parse_args()
    settings = {
        name: getattr(given, name)
        for name in ("megabytes", "only", "rounds")
        if getattr(given, name) is not None
    }
    rows = importlib.import_module(f".{given.command}", __package__).measure(**settings)
    print(json.dumps(rows, indent=1) if given.json else rows_table(rows))


if __name__ == "__main__":  # the workers of a cluster import this file too
    main()
