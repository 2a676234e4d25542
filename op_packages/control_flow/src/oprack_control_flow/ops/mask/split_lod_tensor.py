"""split_lod_tensor: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output


class SplitLoDTensor(OpDef, type="split_lod_tensor"):
    r"""$$OutTrue = (X_i : Mask_i), \quad OutFalse = (X_i : \lnot Mask_i)$$ for the sequences X_i (rows when X has no
    LoD).
    """

    X = Input("Tensor.")
    Mask = Input("bool [n, 1]: one for each sequence.")
    OutTrue = Output("The sequences where Mask is true.")
    OutFalse = Output("The others.")
    level = Attr(0, "The LoD level whose sequences are split.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            for slot in ("OutTrue", "OutFalse"):
                ctx.set_dim(slot, (-1, *ctx.dim("X")[1:]))
                ctx.set_lod_level(slot, ctx.lod_level("X"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "merge_lod_tensor",
            X=fwd.input("X"),
            Mask=fwd.input("Mask"),
            InTrue=fwd.output_grad("OutTrue"),
            InFalse=fwd.output_grad("OutFalse"),
            Out=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )
