"""Shapes given as an attribute or as tensors."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input

SHAPE_TENSOR = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
SHAPE_TENSOR_LIST = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)


def infer_given_shape(ctx: InferShapeContext) -> None:
    """infer_shape of an op with ShapeTensor, ShapeTensorList and `shape`."""
    if ctx.has_input("ShapeTensor"):
        value = ctx.value("ShapeTensor")
        dims = [-1] * max(ctx.dim("ShapeTensor")[0], 0) if value is None else [int(v) for v in value.reshape(-1)]
    elif ctx.has_input("ShapeTensorList"):
        values = [ctx.scalar("ShapeTensorList", i) for i in range(ctx.input_count("ShapeTensorList"))]
        dims = [-1 if v is None else int(v) for v in values]
    else:
        dims = ctx.attr("shape")
    ctx.set_dim("Out", dims)


def infer_dtype_attr(ctx: InferVarTypeContext) -> None:
    """infer_var_type of an op whose `dtype` says the dtype of Out."""
    ctx.set_dtype("Out", ctx.attr("dtype"))
