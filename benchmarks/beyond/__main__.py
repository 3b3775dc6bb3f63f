import importlib
from pathlib import Path

from .._command import parser_of, settings_of, show
from . import __doc__ as description

MODULE = "benchmarks.beyond"
COMMANDS = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    given = parser_of(MODULE, description, COMMANDS).parse_args()
    settings = settings_of(given, "only", "rounds")
    command = importlib.import_module(f".{given.command}", __package__)
    show(command.measure(**settings), MODULE, given)


if __name__ == "__main__":
    main()
