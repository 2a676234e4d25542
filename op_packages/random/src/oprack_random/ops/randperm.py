"""randperm: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._shape import infer_dtype_attr


class Randperm(OpDef, type="randperm"):
    r"""$$P(Out = \pi) = 1 / n!$$ for each order of 0 ... n-1."""

    Out = Output("[n]")
    n = Attr(REQUIRED, "How many.", type=AttrType.INT)
    dtype = Attr(3, "dtype of Out.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.", extra=True)
    expected_kernel_type = dtype_of_attr("dtype")
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(ctx.attr("n") >= 1, f"attribute n is {ctx.attr('n')}; expected at least 1")
        ctx.set_dim("Out", (ctx.attr("n"),))
