"""truncated_gaussian_random: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._shape import infer_dtype_attr


class TruncatedGaussianRandom(OpDef, type="truncated_gaussian_random"):
    r"""$$Out \sim N(mean, std^2)$$, cut off at two standard deviations from the mean."""

    Out = Output("Tensor of `shape` and `dtype`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation before the cut.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_sizes("shape", ctx.attr("shape"))
        ctx.set_dim("Out", ctx.attr("shape"))
