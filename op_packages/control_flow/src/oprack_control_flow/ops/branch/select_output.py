"""select_output: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.types import VarType


class SelectOutput(OpDef, type="select_output"):
    r"""$$Out_{Mask} = X$$; the other outputs are left alone."""

    X = Input("Variable of any kind.")
    Mask = Input("One integer: the branch.")
    Out = Output("One variable of each branch.", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR:
            ctx.set_dims("Out", [ctx.dim("X")] * ctx.output_count("Out"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("select_input", X=fwd.output_grad("Out"), Mask=fwd.input("Mask"), Out=fwd.input_grad("X"))
