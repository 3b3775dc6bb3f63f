"""Findings of the audit, and the repairs that would resolve them."""

from dataclasses import dataclass

from .._types import AnyArray, Chains


@dataclass(frozen=True)
class Finding:
    """A problem or remark reported by the audit.

    Args:
        kind: one word, such as `sign`, `jacobian`, `lag` or `divergences`; the guide lists them.
        message: what is wrong and what to do next.
        fatal: whether estimates from the sample would be wrong; otherwise it is a remark.
        columns: the names of the dimensions concerned, if any.

    >>> Finding("short", "3 draws are too few: give 20.", fatal=False).kind
    'short'
    """

    kind: str
    message: str
    fatal: bool = True
    columns: tuple[str, ...] = ()


def named(names: tuple[str, ...], mask: AnyArray) -> tuple[str, ...]:
    """Select the names at which a mask is true."""
    return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)


Names = tuple[str, ...]


@dataclass(frozen=True)
class Repair:
    """Draws and scores with one common mistake undone, and the message that describes it."""

    kind: str
    draws: Chains
    scores: Chains
    message: str
    columns: Names = ()
    fitted: int = 0  # number of parameters that were fitted to find it
    kept: slice = slice(None)  # the draws of every chain that are kept
