"""segment_pool: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_sequence.ops._infer import same_as


class SegmentPool(OpDef, type="segment_pool"):
    r"""$$Out_s = \sum_{i : SegmentIds_i = s} X_i$$, or their mean, maximum or minimum; 0 for a segment that
    no row has.
    """

    X = Input("[N, ...].")
    SegmentIds = Input("Segment of each row, int32 or int64 [N], never decreasing, from 0 on.")
    Out = Output("[last segment + 1, ...].")
    SummedIds = Output("Rows of each segment, [last segment + 1, 1], of X's dtype.", intermediate=True)
    pooltype = Attr("SUM", "What to compute.").in_set(("SUM", "MEAN", "MAX", "MIN"))
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ids = ctx.value("SegmentIds")
        segments = -1 if ids is None else int(ids.reshape(-1)[-1]) + 1 if ids.size else 0
        ctx.require(segments >= 0 or ids is None, f"the last of SegmentIds is {segments - 1}; expected ids from 0 on")
        ctx.set_dim("Out", (segments, *ctx.dim("X")[1:]))
        ctx.set_dim("SummedIds", (segments, 1))


class SegmentPoolGrad(GradOpDef, of=SegmentPool, reads="X SegmentIds Out SummedIds?", grads_of="X"):
    """Spreads each row of the gradient over its segment; for MAX and MIN to every element equal to the result."""

    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Out", "Out@GRAD")
        same_as(ctx, "X", "X@GRAD")
