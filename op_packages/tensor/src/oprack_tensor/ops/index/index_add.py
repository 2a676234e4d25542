"""index_add and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class IndexAdd(OpDef, type="index_add"):
    r"""$$Out = X,\quad Out_{\dots, Index_i, \dots} \mathrel{+}= AddValue_{\dots, i, \dots}$$ along dim `axis`."""

    X = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 [n]; negative counts from the end of the dim.")
    AddValue = Input("X's shape with n in place of dim `axis`.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(0, "Dim along which Index counts; negative counts from the end.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, (n,), axis = ctx.dim("X"), ctx.require_rank("Index", 1), ctx.axis("X")
        ctx.require_dims("AddValue", [n if i == axis else d for i, d in enumerate(dims)], why="for X and Index")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class IndexAddGrad(
    GradOpDef, of=IndexAdd, reads="Index AddValue", shape_of="AddValue", grads_of="X AddValue", like={"X": "Out@GRAD"}
):
    r"""$$X@GRAD = Out@GRAD,\quad AddValue@GRAD_{\dots, i, \dots} = Out@GRAD_{\dots, Index_i, \dots}$$"""
