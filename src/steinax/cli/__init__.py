"""The command line: `steinax summary`, `audit`, `estimate`, `convert` and `completion`.

Nothing heavy is imported until a command needs it, so that `--help` and mistakes in usage answer at once.
"""

from ._main import main

__all__ = ["main"]
