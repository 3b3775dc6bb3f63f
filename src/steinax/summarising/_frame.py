"""The table as pandas has it. This file imports pandas: import it where it is needed."""

import shutil

from arviz_stats.summary import SummaryDataFrame

from ._render import as_text

ROWS = 60  # of a long table that are shown, as pandas has it


class SummaryFrame(SummaryDataFrame):
    """ArviZ's frame of a summary, which keeps the numbers and shows the digits that matter.

    Printed, it shows the columns that the terminal has room for, and says which it left out.
    """

    @property
    def _constructor(self):
        return SummaryFrame

    def __repr__(self) -> str:
        known = self._fmt_map
        if not known or set(self.columns) != set(known) or self.empty:
            return super().__repr__()
        if not set(self.index) <= set(known[self.columns[0]]):
            return super().__repr__()
        return as_text(self, shutil.get_terminal_size().columns, ROWS)
