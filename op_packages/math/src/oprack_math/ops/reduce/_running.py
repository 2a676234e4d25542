"""Ops that go along one dim and give a result for each element of it."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output


class RunningExtremum(OpDef):
    """The best element so far along a dim, and where it is."""

    x = Input("Tensor of any shape.")
    out = Output("Shape of x; no LoD.")
    indices = Output("Place along the dim of each value of out, the last of equal ones; shape of x.")
    axis = Attr(-1, "Dim to go along; negative counts from the end.")
    dtype = Attr(3, "dtype of indices as a number: 3 int64, 2 int32.").in_set((2, 3))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("x")
        ctx.set_dim("out", ctx.dim("x"))
        ctx.set_dim("indices", ctx.dim("x"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("out", ctx.dtype("x"))
        ctx.set_dtype("indices", ctx.attr("dtype"))
