"""histogram: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class Histogram(OpDef, type="histogram"):
    r"""$$Out_b = \#\{x : \lfloor bins (x - min) / (max - min) \rfloor = b\}$$ max itself belongs to the last bin.

    With min = max = 0 the range is that of X, widened by 1 to both sides when X holds one value only. What lies outside
    of the range is not counted.
    """

    X = Input("Tensor of any shape.")
    Out = Output("int64 [bins]")
    bins = Attr(100, "How many bins.", type=AttrType.LONG).at_least(1)
    min = Attr(0, "Begin of the first bin.")
    max = Attr(0, "End of the last bin.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        low, high = ctx.attr("min"), ctx.attr("max")
        ctx.require(low <= high, f"min is {low} and max {high}; expected min <= max")
        ctx.set_dim("Out", (ctx.attr("bins"),))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
