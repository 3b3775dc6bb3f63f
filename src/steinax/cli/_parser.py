"""The parser of the command line, with every command and option."""

import argparse
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

FILES = "netCDF file, zarr store, or CSV files of CmdStan or their folder"
MODES = ("raise", "warn", "unadjusted", "off")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help formatter that keeps line breaks, and puts the help of each command on the same line."""

    def __init__(self, prog: str, **options: Any):
        super().__init__(prog, max_help_position=22, **options)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """Argument parser with examples at the end of its help, and without abbreviated options.

    Args:
        prog: the name of the program.
        description: one sentence; more after an empty line.
        examples: arguments after `steinax`.
        more: text below the examples.
        options: of argparse.
    """

    def __init__(
        self, prog: str, description: str, examples: list[str], more: str = "", **options: Any
    ):
        shown = "\n".join(f"  steinax {example}" for example in examples)
        super().__init__(
            prog,
            description=textwrap.dedent(description).strip(),
            epilog=f"examples:\n{shown}\n\n{textwrap.dedent(more).strip()}".strip(),
            formatter_class=_Help,
            allow_abbrev=False,
            **options,
        )
        self._positionals.title = "arguments"


def add_command(commands: Any, name: str, description: str, examples: list[str]) -> Parser:
    """Add a command, listed with the first sentence of its description."""
    text = textwrap.dedent(description).strip()
    first = text.partition("\n")[0]
    return commands.add_parser(
        name,
        prog=f"steinax {name}",
        help=first[0].lower() + first[1:].rstrip("."),
        description=text,
        examples=examples,
    )


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the files to read."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILES)


def add_output(parser: argparse.ArgumentParser, csv: bool = True) -> None:
    """Add options for the output file and its format."""
    kind = parser.add_mutually_exclusive_group()
    formats = {"json": "JSON with all digits, and null for NaN and infinity"}
    if csv:
        formats["csv"] = "CSV with all digits"
    for name, text in formats.items():
        kind.add_argument(
            f"--{name}", action="store_const", const=name, dest="format", help=f"print {text}"
        )
    endings = " or ".join(f".{name}" for name in formats)
    parser.add_argument(
        "--output",
        type=partial(_output, endings=[f".{name}" for name in formats]),
        metavar="FILE",
        help=f"write to a file; if it ends in {endings}, in that format",
    )


def _output(name: str, endings: Sequence[str]) -> str:
    """Refuse files that are not text, such as table.xlsx, or in a folder that does not exist."""
    if Path(name).suffix not in ("", ".txt", ".log", *endings):
        raise argparse.ArgumentTypeError(
            f"{name} would be a text file: let its name end in {', '.join(['.txt', *endings])}"
        )
    if not Path(name).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {Path(name).parent}: create it first")
    return name


def _probability(text: str) -> float:
    """Parse a number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number: give one such as 0.95") from None
    if 0 < value < 1:
        return value
    better = f"{value / 100:g}" if 1 < value < 100 else "a number between them, such as 0.95"
    raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1: give {better}")


def add_variables(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that selects variables."""
    parser.add_argument(
        "--var", action="append", metavar="NAME", dest="variables", default=[], help=what
    )


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Add the option for what happens if the audit fails."""
    parser.add_argument(
        "--audit",
        choices=MODES,
        default="raise",
        metavar="MODE",
        help="if the audit fails: raise (the default) stops, warn goes on; unadjusted is for samplers "
        "without a Metropolis step; off skips the audit",
    )


SHELLS = ("bash", "zsh", "tcsh")
DESCRIPTION = """
    Posterior expectations with a far smaller Monte Carlo error, from draws and
    the scores that the sampler computed anyway.

    FILE is one of
      - a netCDF file or a zarr store with scores, as nutpie and `steinax convert`
        write them;
      - the CSV files of CmdStan, CmdStanPy or cmdstanr, draws and diagnostics, or
        the folder that holds them. Scores are in the diagnostics: sample with
        save_latent_dynamics=True and sig_figs=16.
    """
MORE = """
    exit codes:
      0    fine
      1    the audit failed: the scores do not belong to the draws
      2    wrong usage, or a file that cannot be read
      3    watch: the run ended before the expectations were precise enough

    `steinax COMMAND --help` describes a command.
    """


class _Version(argparse.Action):
    """Print the versions, which are looked up on request because reading metadata takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import platform
        from importlib.metadata import version

        print(f"steinax {version('steinax')}")
        packages = (f"{name} {version(name)}" for name in ("jax", "numpy", "equinox", "arviz-base"))
        print(f"on Python {platform.python_version()}, {', '.join(packages)}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line."""
    examples = ["summary draws.nc", "audit draws.nc", "convert output/*.csv draws.nc"]
    parser = Parser("steinax", DESCRIPTION, examples, MORE)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the versions and exit")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    for add in (_summary, _audit, _estimate, _watch, _convert, _completion):
        add(commands)
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _summary(commands: Any) -> None:
    description = """
        Print the table of az.summary, with better means and errors.

        There is a row for each parameter of the model, and for each quantity that was
        stored with it. `worth` says how many times as many draws would have been as
        accurate without control variates.
        """
    examples = [
        "summary draws.nc",
        "summary draws.zarr --var tau --var beta",
        "summary output/*.csv",
        "summary draws.nc --ci-prob 0.95 --csv --output summary.csv",
        "summary draws.nc --json | python -m json.tool",
    ]
    parser = add_command(commands, "summary", description, examples)
    add_files(parser)
    add_variables(parser, "only this variable; can be repeated")
    parser.add_argument(
        "--ci-prob",
        type=_probability,
        metavar="P",
        help="the posterior probability of the interval lb to ub; that of ArviZ by default",
    )
    add_audit(parser)
    add_output(parser)


def _audit(commands: Any) -> None:
    description = """
        Test whether the scores are those of the draws.

        A wrong sign, columns out of order, a missing Jacobian and the like are named,
        with a fix. The exit code is 0 if the audit passed and 1 if it failed.
        """
    examples = ["audit draws.nc", "audit output", "audit draws.nc && steinax summary draws.nc"]
    parser = add_command(commands, "audit", description, examples)
    add_files(parser)
    add_output(parser, csv=False)


def _estimate(commands: Any) -> None:
    description = """
        Print expectations of your own functions, or of variables.

        The arguments of a function are named like variables of the model, and are
        their values at one draw, as in functions.py:

          def total(mu, tau):
              return mu + tau

        A function of x is given the unconstrained draw. Functions return a number or
        an array. Those that use only jax.numpy and arithmetic are fast; others are
        called once for each draw.
        """
    examples = [
        "estimate draws.nc --fn functions:total",
        "estimate draws.nc --fn functions:total --fn functions:both --var tau",
        "estimate draws.nc --var log_likelihood --csv",
    ]
    parser = add_command(commands, "estimate", description, examples)
    add_files(parser)
    parser.add_argument(
        "--fn",
        action="append",
        metavar="MODULE:FUNCTION",
        dest="functions",
        default=[],
        help="a function of a module in this folder or of an installed one; can be repeated",
    )
    add_variables(parser, "a variable, an element such as beta[0], or a group; can be repeated")
    add_audit(parser)
    add_output(parser)


UNITS = ("sd", "absolute", "relative")


def _watch(commands: Any) -> None:
    description = """
        Wait until a running sampler has enough draws.

        FILE is what the sampler is writing: the folder or the CSV files of CmdStan,
        sampling with save_latent_dynamics=True and sig_figs=16, or the zarr store of
        nutpie. All means are estimated again as draws arrive. The command ends, with exit
        code 0, once every 95% interval is within the tolerance; the sampler itself is
        not stopped. A folder without files is waited for, a minute or --seconds.
        """
    examples = [
        "watch output --tolerance 0.01",
        "watch output --tolerance 0.05 --var mu && kill $SAMPLER",
        "watch draws.zarr --tolerance 0.1 --unit absolute --json",
    ]
    parser = add_command(commands, "watch", description, examples)
    add_files(parser)
    parser.add_argument(
        "--tolerance",
        type=float,
        required=True,
        metavar="T",
        help="half the width that each interval may have",
    )
    parser.add_argument(
        "--unit",
        choices=UNITS,
        default="sd",
        metavar="UNIT",
        help="unit of the tolerance: sd (the default) for posterior standard deviations, absolute, or "
        "relative to the value",
    )
    add_variables(parser, "only this variable; can be repeated")
    parser.add_argument(
        "--draws", type=int, metavar="N", help="stop at N draws of all chains together"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    add_audit(parser)
    add_output(parser)


def _convert(commands: Any) -> None:
    description = """
        Write draws, scores and variables to one netCDF file or zarr store.

        steinax reads it much faster than CSV files; ArviZ and xarray read it as well.
        """
    examples = [
        "convert output/*.csv eight_schools.nc",
        "convert output eight_schools.zarr",
        "convert draws.nc draws.zarr --force",
    ]
    parser = add_command(commands, "convert", description, examples)
    add_files(parser)
    parser.add_argument("out", metavar="OUT", help="ends in .nc or in .zarr")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def _completion(commands: Any) -> None:
    description = """
        Print a script that lets a shell complete commands and options.

        This needs shtab: pip install 'steinax[completion]'. For bash, add this line to
        ~/.bashrc; for zsh, write the script to a file _steinax in a folder of $fpath.

          eval "$(steinax completion bash)"
        """
    examples = ["completion bash", "completion zsh > _steinax"]
    parser = add_command(commands, "completion", description, examples)
    parser.add_argument("shell", choices=SHELLS, help="which shell")
