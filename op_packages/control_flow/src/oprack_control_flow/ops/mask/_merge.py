"""What merge_lod_tensor and merge_lod_tensor_infer share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output


class MergeOp(OpDef):
    """Undoes split_lod_tensor: takes the sequences of InTrue and InFalse in turn, as Mask says."""

    X = Input("What was split; its upper LoD levels are kept.")
    Mask = Input("bool [n, 1]: one for each sequence.")
    InTrue = Input("The sequences where Mask is true.")
    InFalse = Input("The others.")
    Out = Output("The joined tensor.")
    level = Attr(0, "The LoD level whose sequences are joined.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("InTrue")[1:]))
            ctx.set_lod_level("Out", ctx.lod_level("InTrue"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("InTrue"))
