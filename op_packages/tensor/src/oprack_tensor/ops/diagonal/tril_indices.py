"""tril_indices: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_tensor.ops.diagonal._triangle import DTYPE, OFFSET, Triangle, places_below, sizes


class TrilIndices(Triangle, type="tril_indices"):
    r"""$$out = \{(i, j) : j \le i + offset\}$$ of a matrix [rows, cols]."""

    rows = Attr(0, "Rows of the matrix.")
    cols = Attr(0, "Columns of the matrix.")
    offset = OFFSET
    dtype = DTYPE

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", (2, places_below(*sizes(ctx, "rows", "cols"), ctx.attr("offset"))))
