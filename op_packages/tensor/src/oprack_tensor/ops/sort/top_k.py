"""top_k: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, Output
from oprack.op.sbp import leading

from oprack_tensor.ops.sort._top_k import TopKOp, infer_shape


class TopK(TopKOp, type="top_k"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \ge Out_1 \ge \ldots \ge Out_{k-1}$$, the k largest along the last dim."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("X with k as last dim; LoD of X.")
    Indices = Output("int64, shape of Out: places along the last dim.")
    k = Attr(1, "How many.")
    sbp = leading(("X",), ("Out", "Indices"), lambda ctx: len(ctx.dim("X")) - 1)

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, -1)


class TopKGrad(GradOpDef, of=TopK, reads="X Indices Out@GRAD", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""
