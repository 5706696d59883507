"""Regular structures of any size: a piece that comes again and again, or pieces in each other."""

from collections.abc import Callable

Grow = Callable[[int], bytes]
"""Returns a structure of about so many bytes."""


def repeated(before: str, piece: str, after: str = "") -> Grow:
    """Return a structure with a piece again and again; § in it becomes its number."""

    def grow(size: int) -> bytes:
        n = size // len(piece.encode())
        inside = "".join(piece.replace("§", str(i)) for i in range(n)) if "§" in piece else piece * n
        return (before + inside + after).encode()

    return grow


def nested(before: str, start: str, inside: str, end: str, after: str = "") -> Grow:
    """Return a structure with starts, and as many ends."""

    def grow(size: int) -> bytes:
        n = size // len((start + end).encode())
        return (before + start * n + inside + end * n + after).encode()

    return grow
