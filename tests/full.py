"""Whether the long runs are wanted whole: `STEINAX_FULL=1 pytest`. CI runs a part of each."""

import os

FULL = bool(os.environ.get("STEINAX_FULL"))
