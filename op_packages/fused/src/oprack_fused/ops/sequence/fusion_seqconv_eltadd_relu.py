"""fusion_seqconv_eltadd_relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output
from oprack.types import AttrType


class FusionSeqconvEltaddRelu(OpDef, type="fusion_seqconv_eltadd_relu"):
    r"""$$Out_i = \max(0, [X_{i+start}, \dots, X_{i+start+length-1}]\,Filter + Bias)$$

    sequence_conv, elementwise_add and relu; rows beyond a sequence are zeros.
    """

    X = Input("[N, M] with LoD.")
    Filter = Input("[contextLength M, K].")
    Bias = Input("[1, K], or [K].")
    Out = Output("[N, K], LoD of X.")
    ColMat = Output("Paddle's buffer of windows; empty.", intermediate=True)
    contextLength = Attr(REQUIRED, "Rows of a window.", type=AttrType.INT).greater_than(0)
    contextStart = Attr(0, "Where a window begins, seen from its row.")
    contextStride = Attr(1, "Always 1.").in_set({1})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        (rows, columns), length = ctx.require_rank("X", 2), ctx.attr("contextLength")
        filters = ctx.require_rank("Filter", 2)
        expected = -1 if columns < 0 else length * columns
        ctx.require_dims("Filter", (expected, filters[1]), why=f"windows of {length} rows of X")
        ctx.require(
            tuple(ctx.dim("Bias")) in ((1, filters[1]), (filters[1],)) or -1 in (*ctx.dim("Bias"), filters[1]),
            f"Bias has shape {list(ctx.dim('Bias'))}; expected [1, {filters[1]}], a number for each column of Filter",
        )
        ctx.set_dim("Out", (rows, filters[1]))
        ctx.set_dim("ColMat", (0,))
        ctx.share_lod("X", "Out")
