"""where_index: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class WhereIndex(OpDef, type="where_index"):
    r"""$$Out = (i : Condition_i \ne 0)$$: the places, [number of them, rank], in row-major order."""

    Condition = Input("Tensor of any shape and type.")
    Out = Output("int64 [number of places, rank of Condition]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, len(ctx.dim("Condition"))))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
