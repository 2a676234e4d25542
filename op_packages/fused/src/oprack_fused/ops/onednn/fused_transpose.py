"""fused_transpose: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_fused.ops.onednn._dims import permuted, reshaped
from oprack_fused.ops.onednn._post import unquantised


class FusedTranspose(OpDef, type="fused_transpose"):
    r"""$$Out_{i_{axis_0}, i_{axis_1}, \dots} = X_{i_0, i_1, \dots}$$, then dims of size 1 taken out or put in, or a
    reshape."""

    X = Input("Tensor of any shape.")
    Out = Output("X with its dims in another order, in another shape.")
    XShape = Output("Paddle: shape of X; empty.", intermediate=True, extra=True)
    axis = Attr(REQUIRED, "Which dim of X comes first, and so on.", type=AttrType.INTS)
    fused_squeeze2_axes = Attr([], "Dims of size 1 to take out.", type=AttrType.INTS)
    fused_unsqueeze2_axes = Attr([], "Where dims of size 1 are put in, one after the other.", type=AttrType.INTS)
    fused_reshape2_shape = Attr([], "Shape of Out, 0 for a dim as it is.", type=AttrType.INTS)
    scale = unquantised("Scale of Out")
    shift = unquantised("Shift of Out", 0.0)
    output_data_type = Attr("", "Paddle: dtype of a quantised Out.").in_set(("", "fp32"))
    data_format = Attr("AnyLayout", "Paddle: layout of X.", extra=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        out = permuted(ctx, ctx.dim("X"), ctx.attr("axis"), "axis")
        gone = {a % max(len(out), 1) for a in ctx.attr("fused_squeeze2_axes")}
        ctx.require(
            all(out[a] in (1, -1) for a in gone),
            f"fused_squeeze2_axes is {list(ctx.attr('fused_squeeze2_axes'))} for {out}; expected dims of size 1",
        )
        out = [d for i, d in enumerate(out) if i not in gone]
        for a in ctx.attr("fused_unsqueeze2_axes"):
            ctx.require(-len(out) - 1 <= a <= len(out), f"fused_unsqueeze2_axes has {a} for {len(out)} dims")
            out.insert(a if a >= 0 else a + len(out) + 1, 1)
        ctx.set_dim("Out", reshaped(ctx, out, ctx.attr("fused_reshape2_shape"), "fused_reshape2_shape"))
        ctx.set_dim("XShape", (0, *ctx.dim("X")))
