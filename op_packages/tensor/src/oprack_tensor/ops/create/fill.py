"""fill: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import product


class Fill(OpDef, type="fill"):
    r"""$$Out_i = value_i$$: numbers that the program itself carries, in the shape `shape`."""

    Out = Output("Tensor of `shape` and `dtype`.")
    value = Attr(REQUIRED, "The numbers, one for each element.", type=AttrType.FLOATS)
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    dtype = Attr(5, "dtype of Out.")
    force_cpu = Attr(False, "Paddle: leave Out on the host.")
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        shape, count = ctx.attr("shape"), len(ctx.attr("value"))
        ctx.require_sizes("shape", shape)
        ctx.require(
            product(shape) == count, f"value has {count} numbers and shape is {list(shape)}; expected as many elements"
        )
        ctx.set_dim("Out", shape)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
