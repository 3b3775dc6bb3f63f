import argparse
from pathlib import Path

from .._markdown import report
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
    "costs": "costs",
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
    parser.add_argument("--out", type=Path, help="a folder for the table and its JSON")
    given = parser.parse_args()
    rows = measured(given.only) if given.command == ENGINE else _run(given)
    report(rows, "benchmarks.speed", f"speed_{given.command}", given.json, given.out)


def _run(given: argparse.Namespace) -> list[dict]:
    settings = {
        name: getattr(given, name)
        for name in ("rounds", "seeds")
        if getattr(given, name) is not None
    }
    return run(f"speed.{COMMANDS[given.command]}", settings, one_core=given.command != "ratios")


main()
