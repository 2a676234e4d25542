"""Shapes of what layer_norm takes."""

from __future__ import annotations

from oprack.op import InferShapeContext

from oprack_fused.ops._shapes import Dims


def normed_columns(ctx: InferShapeContext, dims: Dims, axis: int) -> tuple[int, int]:
    """Rows and columns of a tensor whose dims from `axis` on are normalised together.

    Raises:
        InvalidArgumentError: There is no such axis.
    """
    ctx.require(
        0 < axis < len(dims), f"begin_norm_axis is {axis} for shape {list(dims)}; expected an axis but the first"
    )
    sizes = [1, 1]
    for i, d in enumerate(dims):
        side = i >= axis
        sizes[side] = -1 if -1 in (sizes[side], d) else sizes[side] * d
    return sizes[0], sizes[1]
