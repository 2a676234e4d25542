"""Attributes of ops that slide windows over images: convolution, pooling."""

from __future__ import annotations

from oprack.op import Attr

ALGORITHMS = ("EXPLICIT", "SAME", "VALID")


def positive(default: list[int], doc: str) -> Attr:
    """A list attribute of positive ints, one per spatial dim."""
    return Attr(default, doc).each(lambda v: v > 0, "greater than 0").size(len(default))


def paddings_attr(rank: int) -> Attr:
    """The attribute paddings of a convolution or pooling over `rank` dims."""
    doc = f"{rank} numbers, one per dim, or {2 * rank}: before and after each dim."
    return Attr([0] * rank, doc).size(rank, 2 * rank)


def algorithm_attr() -> Attr:
    return Attr("EXPLICIT", "EXPLICIT: use paddings. SAME: ceil(in / stride) outputs. VALID: none.").in_set(ALGORITHMS)
