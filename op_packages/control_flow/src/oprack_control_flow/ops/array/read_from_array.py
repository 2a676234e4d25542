"""read_from_array: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class ReadFromArray(OpDef, type="read_from_array"):
    r"""$$Out = X[I]$$; zeros like X_W when the array has no such place and X_W is given (the array is a gradient)."""

    X = Input("Tensor array.")
    I = Input("One integer: the place.")  # noqa: E741  the slot's name
    X_W = Input("What was written at the place, when X is a gradient.", dispensable=True)
    Out = Output("The tensor at the place.")
    no_need_buffer_vars = ("X_W",)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            like = "X_W" if ctx.has_input("X_W") else "X"
            ctx.set_dim("Out", ctx.dim(like))
            ctx.share_lod(like, "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp | list[GradOp]:
        """Out@GRAD is added to its place of X@GRAD."""
        place, flow, array = fwd.input("I"), fwd.output_grad("Out"), fwd.input_grad("X")
        if not fwd.has_grad("X"):
            return GradOp("write_to_array", X=flow, I=place, Out=array)
        before, total = fwd.temporary("before"), fwd.temporary("total")
        return [
            GradOp("read_from_array", I=place, X_W=flow, inputs={"X": array}, outputs={"Out": before}),
            GradOp("elementwise_add", X=before, Y=flow, outputs={"Out": total}),
            GradOp("write_to_array", X=total, I=place, Out=array),
        ]
