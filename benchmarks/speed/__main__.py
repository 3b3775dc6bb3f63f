import argparse
import json

from .._markdown import rows_table
from .._pinned import run
from . import __doc__ as description
from .engine._run import measured

COMMANDS = {
    "stochastic": "step",
    "epoch": "epoch",
    "dual": "dual",
    "ratios": "ratios",
    "honesty": "honesty",
    "gathering": "gathering",
    "auto": "auto",
}
ENGINE = "engine"


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=description)
    parser.add_argument("command", choices=[*COMMANDS, ENGINE])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, help="how often each time is taken")
    parser.add_argument("--seeds", type=int, help="samples in each cell of `ratios`")
    parser.add_argument("--only", help="a word in the names of the pieces of `engine` to measure")
    given = parser.parse_args()
    if given.command == ENGINE:
        rows = measured(given.only)
        print(json.dumps(rows, indent=1) if given.json else rows_table(rows))
        return
    settings = {
        name: getattr(given, name)
        for name in ("rounds", "seeds")
        if getattr(given, name) is not None
    }
    rows = run(f"speed.{COMMANDS[given.command]}", settings, one_core=given.command != "ratios")
    print(json.dumps(rows, indent=1) if given.json else rows_table(rows))


main()
