"""empty: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


class Empty(OpDef, type="empty"):
    r"""A tensor of the given shape whose values do not matter; here $$Out = 0$$ so that runs can be repeated."""

    ShapeTensor = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)
    ShapeTensorList = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of the given shape and `dtype`.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = [-1 if s is None else s for s in given_ints(ctx, "shape", "ShapeTensor", "ShapeTensorList")]
        ctx.require_sizes("shape", shape)
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
