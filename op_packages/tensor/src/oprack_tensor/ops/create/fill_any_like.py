"""fill_any_like: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of_attr, empty_grad
from oprack.op.sbp import unary


class FillAnyLike(OpDef, type="fill_any_like"):
    r"""$$Out_i = value$$ in the shape of X."""

    X = Input("Gives the shape; its values are not read.")
    Out = Output("Shape and LoD of X.")
    value = Attr(0.0, "The value.", support_tensor=True)
    dtype = Attr(-1, "dtype of Out; -1 takes that of X.")
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of_attr("dtype", "X")
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", ctx.dtype("X") if ctx.attr("dtype") < 0 else ctx.attr("dtype"))
