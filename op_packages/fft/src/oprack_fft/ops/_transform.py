"""What the definitions of Fourier transforms share."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext
from oprack.types import AttrType

AXES = Attr(REQUIRED, "Axes to transform, each once.", type=AttrType.LONGS)
NORMALIZATION = Attr(
    REQUIRED,
    "Which way divides by the number n of points: backward (the inverse one), forward, or ortho (both, by its root).",
    type=AttrType.STRING,
).in_set({"backward", "forward", "ortho"})
FORWARD = Attr(REQUIRED, "The sign of the exponent: minus when true.", type=AttrType.BOOLEAN)


def points(ctx: InferShapeContext, *, real: bool) -> tuple[list[int], list[int]]:
    """Shape of X and the axes, from the front.

    Args:
        ctx: The context of the rule.
        real: Whether the last axis is halved or doubled, so that there has to be one.

    Raises:
        InvalidArgumentError: An axis is not there, is listed twice, or has no points.
    """
    dims, axes = list(ctx.dim("X")), ctx.axes("X", "axes")
    ctx.require(bool(axes) or not real, "axes is empty; expected one axis at least, the last of which is halved")
    for axis in axes:
        ctx.require(
            not dims or dims[axis] != 0,
            f"X has shape {dims} and is transformed along axis {axis}; expected at least one point there",
        )
    return dims, axes
