"""triu_indices: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_tensor.ops.diagonal._triangle import DTYPE, OFFSET, Triangle, places_below, sizes


class TriuIndices(Triangle, type="triu_indices"):
    r"""$$out = \{(i, j) : j \ge i + offset\}$$ of a matrix [row, col]."""

    row = Attr(0, "Rows of the matrix.")
    col = Attr(0, "Columns of the matrix.")
    offset = OFFSET
    dtype = DTYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = sizes(ctx, "row", "col")
        ctx.set_dim("out", (2, rows * columns - places_below(rows, columns, ctx.attr("offset") - 1)))
