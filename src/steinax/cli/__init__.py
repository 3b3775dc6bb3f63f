"""The command line: `steinax summary`, `audit`, `estimate`, `watch`, `convert` and `completion`.

`main` runs one command, and turns errors into a message and an exit code.
"""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ._files import check_files, format_of
from ._parser import build_parser

__all__ = ["main"]

FINE, AUDIT_FAILED, WRONG = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # 128 + SIGINT, 128 + SIGPIPE, as in a shell


def main(argv: Sequence[str] | None = None) -> int:
    """Run `steinax` with the given arguments, or with those of the process by default.

    Args:
        argv: the arguments after `steinax`.

    Returns:
        The exit code: 0 for success, 1 if the audit failed, 2 for wrong usage or a file that cannot be read,
        3 if a run ended before it was precise enough.

    >>> main(["--version"])
    steinax ...
    on Python ...
    0
    """
    try:
        code = _run(argv)
        sys.stdout.flush()  # here, where a closed pipe can still be caught
    except BrokenPipeError:
        _discard_output()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as stop:  # --help, --version, or wrong usage
        return int(stop.code or FINE)
    if options.command is None:
        parser.print_help(sys.stderr)
        return WRONG
    from ._commands import COMMANDS

    command = COMMANDS[options.command]
    if options.debug:
        return _start(command, options)
    try:
        with _short_warnings():
            return _start(command, options)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _tell(error)


def _start(command: Any, options: Any) -> int:
    """Run a command after checking that its files exist, and that one output format is asked for."""
    if hasattr(options, "output"):
        format_of(options)
    check_files(getattr(options, "files", ()), coming=options.command == "watch")
    return command(options)


def _tell(error: Exception) -> int:
    """Print the message of an error, with the type of an unexpected one, and return the exit code."""
    if any(kind.__name__ == "AuditError" for kind in type(error).__mro__):  # importing it is slow
        _print(str(error))
        return AUDIT_FAILED
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    known = isinstance(error, ValueError | KeyError | OSError | ImportError)
    lines = [text if known else f"{type(error).__name__}: {text}"]
    notes = [note for note in getattr(error, "__notes__", []) if "JAX has removed" not in note]
    if notes or not known:  # an error of the user's function, or an unexpected one
        lines += [*notes, "Run it again with --debug to see where."]
    _print("steinax: error: " + "\n".join(lines))
    return WRONG


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def _discard_output() -> None:
    """Redirect stdout to null after its pipe was closed, so that the interpreter exits quietly."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each UserWarning as one line without its place in the code, and ignore other warnings."""

    def show(message: Any, *_: object) -> None:
        _print(f"steinax: warning: {message}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            # two processes may write the same entry; it is then compiled again
            warnings.filterwarnings("ignore", "Error .* persistent compilation cache")
        warnings.showwarning = show
        yield
