"""Run one command, and turn what goes wrong into a message and an exit code."""

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from ._files import check_files
from ._parser import build_parser

FINE, AUDIT_FAILED, WRONG = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # 128 + SIGINT, 128 + SIGPIPE, as a shell has them


def main(argv: Sequence[str] | None = None) -> int:
    """Run `steinax` with the given arguments, or with those of the process.

    Args:
        argv: what is typed after `steinax`.

    Returns:
        The exit code: 0 fine, 1 the audit failed, 2 wrong usage or a file that cannot be read.

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
    _use_one_thread()
    command = import_module(f"._{options.command}", __package__)
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
    """Run a command, if its files are there."""
    check_files(getattr(options, "files", ()))
    return command.run(options)


def _use_one_thread() -> None:
    """Where all is small, threads of BLAS wait for each other longer than they work.

    On two busy cores a summary of 100 parameters took 4 s with one thread and 11 to 18 s with two. NumPy
    reads this once, when it is imported.
    """
    if "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")


def _tell(error: Exception) -> int:
    """The message of an error, which ends in what to do next; of a surprise, its type as well."""
    if any(kind.__name__ == "AuditError" for kind in type(error).__mro__):  # its import takes long
        _print(str(error))
        return AUDIT_FAILED
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    known = isinstance(error, ValueError | KeyError | OSError | ImportError)
    lines = [text if known else f"{type(error).__name__}: {text}"]
    notes = [note for note in getattr(error, "__notes__", []) if "JAX has removed" not in note]
    if notes or not known:  # of a function of the user, or a surprise
        lines += [*notes, "Run it again with --debug to see where."]
    _print("steinax: error: " + "\n".join(lines))
    return WRONG


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def _discard_output() -> None:
    """The reader has gone: let the interpreter not find out again when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Warnings to the user as one line each, without the place in the code; no others."""

    def show(message: Any, *_: object) -> None:
        _print(f"steinax: warning: {message}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)
            # two processes may write one entry; it is compiled again
            warnings.filterwarnings("ignore", "Error .* persistent compilation cache")
        warnings.showwarning = show
        yield


__all__ = ["main"]
