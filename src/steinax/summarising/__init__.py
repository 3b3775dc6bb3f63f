"""The table people know from ArviZ, with the controlled numbers in it and the plain ones beside them."""

from ._render import render
from ._summary import summary

__all__ = ["render", "summary"]
