"""array_to_lod_tensor: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class ArrayToLoDTensor(OpDef, type="array_to_lod_tensor"):
    r"""$$Out_{o_s + t} = X[t]_{r(s)}$$ for each sequence s, whose rows begin at o_s and whose place in the rank table
    is r(s).

    Undoes lod_tensor_to_array: Out holds the sequences in their own order again.
    """

    X = Input("Tensor array, one tensor for each time step.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor with the sequences of the rank table.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
            ctx.set_lod_level("Out", 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "lod_tensor_to_array",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )
