"""Sequences parted by a mask, and put together again."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


# What merge_lod_tensor and merge_lod_tensor_infer share.
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


# merge_lod_tensor: its definition; the operator is in the file of this name below operators.
class MergeLoDTensor(MergeOp, type="merge_lod_tensor"):
    r"""$$Out_i = InTrue_{k(i)}$$ where $$Mask_i$$, else $$InFalse_{i - k(i)}$$, with $$k(i) = \sum_{j<i} Mask_j$$,
    sequence by sequence.

    Undoes split_lod_tensor.
    """

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "split_lod_tensor",
            X=fwd.output_grad("Out"),
            Mask=fwd.input("Mask"),
            OutTrue=fwd.input_grad("InTrue"),
            OutFalse=fwd.input_grad("InFalse"),
            attrs=fwd.attrs,
        )


# merge_lod_tensor_infer: its definition; the operator is in the file of this name below operators.
class MergeLoDTensorInfer(MergeOp, type="merge_lod_tensor_infer"):
    r"""merge_lod_tensor without a gradient: $$Out_i = InTrue_{k(i)}$$ where $$Mask_i$$, else
    $$InFalse_{i - k(i)}$$.
    """

    make_grad = empty_grad


# split_lod_tensor: its definition; the operator is in the file of this name below operators.
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
