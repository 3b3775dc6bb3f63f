"""How an error says which piece of work it came from."""


def piece_note(place: int, piece: object, total: int, what: str) -> str:
    """One line for `add_note`.

    >>> piece_note(3, slice(30, 40), 10, "streaming")
    'streaming: piece 3 of 10 (from 0), slice(30, 40, None)'
    """
    return f"{what or 'working'}: piece {place} of {total} (from 0), {repr(piece)[:200]}"


__all__ = ["piece_note"]
