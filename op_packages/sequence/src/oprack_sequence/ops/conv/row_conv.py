"""row_conv: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import sequences

from oprack_sequence.ops._infer import same_as


class RowConv(OpDef, type="row_conv"):
    r"""Lookahead convolution, element by element: $$Out_t = \sum_{k=0}^{K-1} X_{t+k} \odot Filter_k$$

    Rows past the end of the sequence are zero.
    """

    X = Input("[N, D] with LoD, or [B, T, D].")
    Filter = Input("[K, D]: weights of this row and of K - 1 rows to come.")
    Out = Output("Shape and LoD of X.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        if len(ctx.require_rank("X", 2, 3)) == 2:
            ctx.require_lod("X")
        ctx.require_rank("Filter", 2)
        same_as(ctx, "X", "Out")


class RowConvGrad(GradOpDef, of=RowConv, reads="X Filter", lod=False):
    """Gradient of row_conv."""
