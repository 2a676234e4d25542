"""Ops that pick one element along a dim and say which it is."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of

from oprack_math.ops._reduce import reduced_dims

AXIS = Attr(-1, "Dim to reduce; negative counts from the end.")


class Pick(OpDef):
    """One element for each row along dim `axis`, an attribute as `keepdim` is."""

    X = Input("Tensor of any shape.")
    Out = Output("X's shape without dim `axis`; no LoD.")
    Indices = Output("int64, the place along the dim of each element of Out, whose shape it has.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = reduced_dims(ctx, ctx.dim("X"), [ctx.attr("axis")], ctx.attr("keepdim"), False, elements=True)
        ctx.set_dim("Out", dims)
        ctx.set_dim("Indices", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Indices", "int64")


class PickGrad(GradOpDef, reads="X Indices Out@GRAD", shape_of="X"):
    """Gradient of a Pick: that of Out, where the element was."""

    expected_kernel_type = dtype_of("Out@GRAD")
