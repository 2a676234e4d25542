"""lod_tensor_to_array: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import VarType


class LoDTensorToArray(OpDef, type="lod_tensor_to_array"):
    r"""$$Out[t]_r = X_{o_s + t}$$ where s is the r-th longest sequence, its rows begin at o_s, and it has more than t
    of them.
    """

    X = Input("Tensor with sequences as the rank table has them.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor array, one tensor for each time step.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "array_to_lod_tensor",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )
