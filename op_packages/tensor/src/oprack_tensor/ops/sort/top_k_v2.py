"""top_k_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Output
from oprack.op.sbp import SbpContext, Signature, factors, letters

from oprack_tensor.ops.sort._top_k import TopKOp, infer_shape


class TopKV2(TopKOp, type="top_k_v2"):
    r"""$$Out_i = X_{Indices_i}, \quad Out_0 \ge Out_1 \ge \ldots \ge Out_{k-1}$$, the k largest along a dim; the first
    of equals wins.

    Without `largest`, the k smallest in rising order.
    """

    Out = Output("X with k in place of dim `axis`; LoD of X.")
    Indices = Output("int64, shape of Out: places along `axis`.")
    k = Attr(1, "How many.")
    axis = Attr(-1, "Along which dim; negative counts from the end.")
    largest = Attr(True, "The largest instead of the smallest.")
    sorted = Attr(True, "In order; otherwise any order is allowed.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("K"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", -1)] = None
        return factors({"X": names}, {"Out": names, "Indices": names})

    def infer_shape(ctx: InferShapeContext) -> None:
        infer_shape(ctx, ctx.attr("axis"))


class TopKV2Grad(GradOpDef, of=TopKV2, reads="X K Indices Out@GRAD", shape_of="X K", grads_of="X"):
    """X@GRAD holds Out@GRAD at the places Indices, 0 elsewhere."""
