"""Text from outside of the process that is written to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Text of a file for a terminal: control characters, which could steer it, as Python writes them."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
