"""Data frame that `summary` returns; importing it imports pandas and ArviZ, which takes a second."""

import shutil

from arviz_stats.summary import SummaryDataFrame

from ._render import as_html, as_text, is_summary

ROWS = 60  # most rows that are printed, as in pandas


class SummaryFrame(SummaryDataFrame):
    """ArviZ's data frame of a summary, which keeps all digits and prints those that the errors support.

    Printed, it shows the columns that fit in the terminal, and names those left out.
    """

    @property
    def _constructor(self):
        return SummaryFrame

    def __repr__(self) -> str:
        if not self._is_whole():
            return super().__repr__()
        return as_text(self, shutil.get_terminal_size().columns, ROWS)

    def _repr_html_(self) -> str:
        html = super()._repr_html_() or ""
        return as_html(html, self.attrs.get("steinax", "")) if self._is_whole() else html

    def _is_whole(self) -> bool:
        """Whether columns are those of a summary, and not its rows or others."""
        cells = self._fmt_map
        if not cells or set(self.columns) != set(cells) or self.empty or not is_summary(self):
            return False
        return set(self.index) <= set(cells[self.columns[0]])
