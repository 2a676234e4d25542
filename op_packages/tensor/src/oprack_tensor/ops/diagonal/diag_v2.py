"""diag_v2 and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_tensor.ops.diagonal._family import OFFSET, diagonal_size


class DiagV2(OpDef, type="diag_v2"):
    r"""Of a vector the matrix with $$Out_{i, i + offset} = X_i$$ and padding_value elsewhere; of a matrix the diagonal
    $$Out_i = X_{i, i + offset}$$"""

    X = Input("[n], [n, m], or 0-D as [1].")
    Out = Output("[n + |offset|, n + |offset|], or the length of the diagonal; no LoD.")
    offset = OFFSET
    padding_value = Attr(0.0, "What is off the diagonal of the matrix that a vector makes.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, offset = ctx.require_rank("X", 0, 1, 2), ctx.attr("offset")
        if len(dims) == 2:
            ctx.set_dim("Out", (diagonal_size(*dims, offset),))
        else:
            size = dims[0] if dims else 1
            ctx.set_dim("Out", [-1 if size < 0 else size + abs(offset)] * 2)


class DiagV2Grad(GradOpDef, of=DiagV2, shape_of="X"):
    r"""$$X@GRAD_i = Out@GRAD_{i, i + offset}$$ of a vector; of a matrix Out@GRAD on the diagonal."""
