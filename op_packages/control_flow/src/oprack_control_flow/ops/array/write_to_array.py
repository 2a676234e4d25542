"""write_to_array: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class WriteToArray(OpDef, type="write_to_array"):
    r"""$$Out[I] = X$$; the array grows as needed."""

    X = Input("Tensor of any shape.")
    I = Input("One integer: the place.")  # noqa: E741  the slot's name
    Out = Output("Tensor array.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp | list[GradOp]:
        """X@GRAD is read from its place of Out@GRAD, which is then 0: what was there before is no longer seen."""
        place, flow, zeros = fwd.input("I"), fwd.output_grad("Out"), fwd.temporary("zeros")
        read = GradOp("read_from_array", X=flow, I=place, X_W=fwd.input("X"), Out=fwd.input_grad("X"))
        if not fwd.held_before("Out"):
            return read
        return [
            read,
            GradOp("fill_zeros_like", X=fwd.input("X"), outputs={"Out": zeros}),
            GradOp("write_to_array", X=zeros, I=place, outputs={"Out": flow}),
        ]
