"""fill_zeros_like2: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of_attr, empty_grad
from oprack.op.sbp import unary


class FillZerosLike2(OpDef, type="fill_zeros_like2"):
    r"""$$Out = 0$$ at every place of X, in a dtype of its own."""

    X = Input("Gives the shape; its values are not read.")
    Out = Output("Shape and LoD of X.")
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    no_need_buffer_vars = ("X",)
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
