"""`steinax completion`."""

import argparse

from .._require import require
from ._parser import build_parser

PATHS = ("files", "out", "output")


def run(options: argparse.Namespace) -> int:
    """Print the script that a shell reads."""
    shtab = require("shtab", extra="completion")
    parser = build_parser()
    for one in _with_commands(parser):
        for action in one._actions:
            if action.dest in PATHS:
                setattr(action, "complete", shtab.FILE)  # noqa: B010
    print(shtab.complete(parser, shell=options.shell))
    return 0


def _with_commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    inside = [
        one
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for one in action.choices.values()
    ]
    return [parser, *inside]


__all__ = ["run"]
