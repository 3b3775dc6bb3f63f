"""Data frame that `summary` returns; importing it imports pandas and ArviZ, which takes a second."""

import shutil

from arviz_stats.summary import SummaryDataFrame

from ._render import as_text

ROWS = 60  # most rows that are printed, as in pandas


class SummaryFrame(SummaryDataFrame):
    """ArviZ's data frame of a summary, which keeps all digits and prints those that the errors support.

    Printed, it shows the columns that fit in the terminal, and names those left out.
    """

    @property
    def _constructor(self):
        return SummaryFrame

    def __repr__(self) -> str:
        cells = self._fmt_map
        if not cells or set(self.columns) != set(cells) or self.empty:
            return super().__repr__()
        if not set(self.index) <= set(cells[self.columns[0]]):
            return super().__repr__()
        return as_text(self, shutil.get_terminal_size().columns, ROWS)
