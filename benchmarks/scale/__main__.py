import importlib
from pathlib import Path

from .._command import parser_of, settings_of, show
from . import __doc__ as description
from ._growth import draw

MODULE = "benchmarks.scale"
COMMANDS = ("streaming", "farm", "integrands", "devices", "dimensions")
PICTURE = "picture"


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    parser = parser_of(MODULE, description, [*COMMANDS, PICTURE])
    parser.add_argument("--megabytes", type=float, help="of draws on disk, for `streaming`")
    given = parser.parse_args()
    if given.command == PICTURE:
        draw(given.out or Path("docs", "benchmarks"))
        return
    settings = settings_of(given, "megabytes", "only", "rounds")
    show(
        importlib.import_module(f".{given.command}", __package__).measure(**settings), MODULE, given
    )


if __name__ == "__main__":  # the workers of a cluster import this file too
    main()
