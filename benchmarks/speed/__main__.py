from .._command import parser_of, settings_of, show
from .._pinned import run
from . import __doc__ as description
from .engine._run import measured

MODULE = "benchmarks.speed"
COMMANDS = {
    "stochastic": "step",
    "epoch": "epoch",
    "dual": "dual",
    "ratios": "ratios",
    "honesty": "honesty",
    "gathering": "gathering",
    "auto": "auto",
    "cold": "cold",
    "costs": "costs",
    "looking": "looking",
}
ENGINE = "engine"


def main() -> None:
    """Run the measurement that was asked for and print what it found."""
    parser = parser_of(MODULE, description, [*COMMANDS, ENGINE])
    parser.add_argument("--seeds", type=int, help="samples in each cell of `ratios`")
    given = parser.parse_args()
    if given.command == ENGINE:
        show(measured(given.only), MODULE, given)
        return
    settings, alone = settings_of(given, "rounds", "seeds"), given.command != "ratios"
    show(run(f"speed.{COMMANDS[given.command]}", settings, one_core=alone), MODULE, given)


main()
