"""ArviZ's summary table with controlled estimates, and the plain ones for comparison."""

from ._render import render
from ._summary import summary

__all__ = ["render", "summary"]
