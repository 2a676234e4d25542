"""kthvalue and its gradient."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext

from oprack_math.ops._reduce import KEEP_DIM
from oprack_math.ops.statistics._pick import AXIS, Pick, PickGrad


class Kthvalue(Pick, type="kthvalue"):
    r"""$$Out = X_{(k)}$$ the k-th smallest element along a dim; NaN is the greatest, of equal ones the first comes
    first."""

    k = Attr(1, "Which one, 1 for the smallest.").at_least(1)
    axis = AXIS
    keepdim = KEEP_DIM

    def infer_shape(ctx: InferShapeContext) -> None:
        Pick.infer_shape(ctx)
        dims, axis, k = ctx.dim("X"), ctx.axis("X"), ctx.attr("k")
        size = dims[axis] if axis < len(dims) else 1
        ctx.require(size < 0 or k <= size, f"k is {k} but X has shape {list(dims)}; expected at most {size}")


class KthvalueGrad(PickGrad, of=Kthvalue):
    r"""$$X@GRAD = Out@GRAD$$ at the place Indices, 0 elsewhere."""
