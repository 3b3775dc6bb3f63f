"""`python -m steinax` is the command `steinax`."""

import sys

from .cli import main

sys.exit(main())
