"""assign_value: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType


class AssignValue(OpDef, type="assign_value"):
    r"""$$Out_i = values_i$$: the values that the program itself carries, in the shape `shape`."""

    Out = Output("Tensor of `shape` and `dtype`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    dtype = Attr(REQUIRED, "dtype of Out; tells which list of values counts.", type=AttrType.INT)
    bool_values = Attr([], "Values of a bool tensor, 0 or 1.", type=AttrType.INTS)
    fp32_values = Attr([], "Values of a float32 tensor.", type=AttrType.FLOATS)
    fp64_values = Attr([], "Values of a float64 tensor.", type=AttrType.FLOAT64S)
    int32_values = Attr([], "Values of an int32 tensor, or of a smaller integer type.", type=AttrType.INTS)
    int64_values = Attr([], "Values of an int64 tensor.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_sizes("shape", ctx.attr("shape"))
        ctx.set_dim("Out", ctx.attr("shape"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
