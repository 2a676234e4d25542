"""top_k_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Output

from oprack_tensor.ops.sort._top_k import TopKOp, infer_shape


class TopKV2(TopKOp, type="top_k_v2"):
    """The k largest or smallest elements along a dim, in order, and where they were; the first of equals wins."""

    Out = Output("X with k in place of dim `axis`; LoD of X.")
    Indices = Output("int64, shape of Out: places along `axis`.")
    k = Attr(1, "How many.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    largest = Attr(True, "The largest instead of the smallest.")
    sorted = Attr(True, "In order; otherwise any order is allowed.")

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, ctx.attr("axis"))


class TopKV2Grad(GradOpDef, of=TopKV2, reads="X K Indices Out@GRAD", shape_of="X K", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""
