"""Memory: what tensors on the same memory share."""

from __future__ import annotations


class Memory:
    """State shared by tensors on the same memory: how often it was written to, and by which op last."""

    __slots__ = ("version", "writer")

    def __init__(self) -> None:
        self.version, self.writer = 0, ""
