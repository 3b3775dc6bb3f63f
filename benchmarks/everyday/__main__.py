from inspect import signature
from pathlib import Path

from .._command import cache_folder, parser_of, settings_of, show
from . import __doc__ as description, errors, large, predictive, runs, seconds, weights

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
    kept = cache_folder("everyday")
    parser.add_argument("--cache", type=Path, default=kept, help="where chains are kept")
    given = parser.parse_args()
    measure, settings = COMMANDS[given.command].measure, settings_of(given, "only", "rounds")
    for name in settings.keys() - signature(measure).parameters.keys():
        parser.error(f"{given.command} takes no --{name}: leave it out.")
    rows = measure(given.cache, **settings)
    show(rows, MODULE, given)
    if given.command == "errors" and given.out is not None and given.only is None:
        errors.draw(rows, given.out)


if __name__ == "__main__":
    main()
