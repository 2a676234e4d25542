"""size: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class Size(OpDef, type="size"):
    r"""$$Out = \prod_a n_a$$: the number of elements of Input."""

    Input_ = Input("Tensor of any shape; its values are not read.")
    Out = Output("int64, 0-D.")
    no_need_buffer_vars = ("Input",)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
