"""Shapes of signals and of their frames."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext
from oprack.types import AttrType

HOP_LENGTH = Attr(REQUIRED, "Steps from the start of one frame to that of the next.", type=AttrType.INT).greater_than(0)
AXIS = Attr(-1, "-1: time is the last axis; 0: it is the first one.").in_set({0, -1})


def frame_count(ctx: InferShapeContext, steps: int, length: int, hop: int) -> int:
    """Number of whole frames in a signal; -1 where its length is not known. Raises InvalidArgumentError for none."""
    ctx.require(
        steps < 0 or length <= steps,
        f"X has shape {list(ctx.dim('X'))}, {steps} steps, and a frame has {length}; expected no longer frames than X",
    )
    return -1 if steps < 0 else 1 + (steps - length) // hop
