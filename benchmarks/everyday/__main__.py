from pathlib import Path

from .._command import parser_of, settings_of, show
from . import __doc__ as description
from . import errors, large, predictive, runs, seconds, weights

MODULE = "benchmarks.everyday"
COMMANDS = {
    "errors": errors,
    "seconds": seconds,
    "runs": runs,
    "large": large,
    "predictive": predictive,
    "weights": weights,
}


def main() -> None:
    """Run the measurement that was asked for, print what it found, and draw what there is to draw."""
    parser = parser_of(MODULE, description, COMMANDS)
    parser.add_argument("--cache", type=Path, required=True, help="a folder for the chains")
    given = parser.parse_args()
    rows = COMMANDS[given.command].measure(given.cache, **settings_of(given, "only", "rounds"))
    show(rows, MODULE, given)
    if given.command == "errors" and given.out is not None and given.only is None:
        errors.draw(rows, given.out)


if __name__ == "__main__":
    main()
