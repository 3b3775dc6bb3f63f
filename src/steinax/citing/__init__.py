"""What to cite: the papers behind what an estimate really used."""

from ._citations import Citations, citations
from ._reference import Reference

__all__ = ["Citations", "Reference", "citations"]
