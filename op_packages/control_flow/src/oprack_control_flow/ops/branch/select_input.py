"""select_input: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.types import VarType


class SelectInput(OpDef, type="select_input"):
    r"""$$Out = X_{Mask}$$: joins branches of which only one ran."""

    X = Input("One variable of each branch.", duplicable=True)
    Mask = Input("One integer: the branch.")
    Out = Output("The variable of the branch, of any kind.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.is_runtime or any(ctx.kind("X", i) != VarType.LOD_TENSOR for i in range(ctx.input_count("X"))):
            return
        shapes = ctx.dims("X")
        same_rank = len({len(s) for s in shapes}) == 1
        merged = [d[0] if len(set(d)) == 1 else -1 for d in zip(*shapes, strict=True)] if same_rank else shapes[0]
        ctx.set_dim("Out", merged)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("select_output", X=fwd.output_grad("Out"), Mask=fwd.input("Mask"), Out=fwd.input_grad("X"))
