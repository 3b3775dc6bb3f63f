"""What the commands have in common: how help looks, and options that more than one of them has."""

import argparse
import textwrap
from typing import Any

FILES = "netCDF file, zarr store, or CSV files of CmdStan or their folder"
MODES = ("raise", "warn", "unadjusted", "off")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Text as it is written; the longest command has its line to itself otherwise."""

    def __init__(self, prog: str, **options: Any):
        super().__init__(prog, max_help_position=22, **options)
        self._action_max_length = 14


class Parser(argparse.ArgumentParser):
    """With examples at the end of its help; no abbreviations, so that scripts last.

    Args:
        prog: what is typed.
        description: one sentence; after an empty line, more.
        examples: what is typed after `steinax`.
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
    """One command; the first sentence of its description is its line in the list of commands."""
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
    """What to read."""
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILES)


def add_output(parser: argparse.ArgumentParser, csv: bool = True) -> None:
    """Where the answer goes, and in which form."""
    kind = parser.add_mutually_exclusive_group()
    every = {"json": "JSON with all digits, and null for what is no number"}
    if csv:
        every["csv"] = "CSV with all digits"
    for one, text in every.items():
        kind.add_argument(
            f"--{one}", action="store_const", const=one, dest="format", help=f"print {text}"
        )
    endings = " or ".join(f".{one}" for one in every)
    parser.add_argument(
        "--output",
        metavar="FILE",
        help=f"write to a file; if it ends in {endings}, in that format",
    )


def add_choice(parser: argparse.ArgumentParser, quick: bool | None, default: str) -> None:
    """How long to look for control variates.

    Args:
        parser: of the command.
        quick: the default.
        default: what to say of it.
    """
    texts = {
        True: "choose among polynomials alone: nothing is compiled",
        False: f"choose among kernels as well: slower, often more accurate; {default}",
    }
    speed = parser.add_mutually_exclusive_group()
    for value, text in texts.items():
        speed.add_argument(
            "--quick" if value else "--full",
            action="store_const",
            const=value,
            dest="quick",
            default=quick,
            help=text,
        )


def add_variables(parser: argparse.ArgumentParser, what: str) -> None:
    """Which variables."""
    parser.add_argument(
        "--var", action="append", metavar="NAME", dest="variables", default=[], help=what
    )


def add_audit(parser: argparse.ArgumentParser) -> None:
    """What a failed audit means."""
    parser.add_argument(
        "--audit",
        choices=MODES,
        default="raise",
        metavar="MODE",
        help="if the audit fails: raise (the default) stops, warn goes on; unadjusted is for samplers "
        "without a Metropolis step; off does not look",
    )
