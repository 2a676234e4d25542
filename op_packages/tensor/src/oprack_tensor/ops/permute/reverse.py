"""reverse: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.op.sbp import all_but
from oprack.types import AttrType


class Reverse(OpDef, type="reverse"):
    r"""$$Out_{\dots, i, \dots} = X_{\dots, n - 1 - i, \dots}$$ along each dim of `axis`, as flip has it."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(REQUIRED, "Dims to reverse; negative ones count from the end.", type=AttrType.INTS, support_tensor=True)
    sbp = all_but("axis")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not any(isinstance(a, str) for a in ctx.attr("axis")):
            ctx.axes("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("reverse", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs)
