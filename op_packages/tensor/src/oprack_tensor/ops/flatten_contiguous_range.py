"""flatten_contiguous_range: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, normal_axis
from oprack.op.sbp import regrouped

from oprack_tensor.dims import product
from oprack_tensor.ops.shape import XSHAPE, XShapeGrad, keep_shape


class FlattenContiguousRange(OpDef, type="flatten_contiguous_range"):
    r"""$$Out.flat = X.flat$$: X with the dims start_axis ... stop_axis joined into one; a 0-D X becomes [1]."""

    X = Input("Tensor of any shape.")
    Out = Output("X flattened; LoD of X while the first dim stays.")
    XShape = XSHAPE
    start_axis = Attr(1, "First dim to join; negative counts from the end.")
    stop_axis = Attr(1, "Last dim to join; negative counts from the end.")
    inplace = {"X": "Out"}

    sbp = regrouped

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        keep_shape(ctx)
        if not dims:
            ctx.set_dim("Out", (1,))
            return
        start = normal_axis(ctx.op_type, ctx.attr("start_axis"), len(dims), "start_axis")
        stop = normal_axis(ctx.op_type, ctx.attr("stop_axis"), len(dims), "stop_axis")
        ctx.require(start <= stop, f"start_axis is {start} and stop_axis {stop}; expected start_axis <= stop_axis")
        out = (*dims[:start], product(dims[start : stop + 1]), *dims[stop + 1 :])
        ctx.set_dim("Out", out)
        if out[0] == dims[0]:
            ctx.share_lod("X", "Out")


class FlattenContiguousRangeGrad(XShapeGrad, of=FlattenContiguousRange, linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""
