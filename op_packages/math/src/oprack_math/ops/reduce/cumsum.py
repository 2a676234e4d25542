"""cumsum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output


class Cumsum(OpDef, type="cumsum"):
    r"""$$Out_i = \sum_{j \le i} X_j$$"""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X; with flatten one dim.")
    axis = Attr(-1, "Dim along which to add up.", support_tensor=True)
    flatten = Attr(False, "Add up over all elements, as one dim.")
    exclusive = Attr(False, "Leave out the element itself, so that the first sum is 0.")
    reverse = Attr(False, "Add up from the end.")
    inplace = {"X": "Out"}
    versions = OpVersion("cumsum").checkpoint("Sums over all elements.", ("new_attr", "flatten", False))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis = ctx.dim("X"), ctx.attr("axis")
        if ctx.attr("flatten"):
            size = 1
            for d in dims:
                size *= d
            ctx.set_dim("Out", (-1 if -1 in dims else size,))
        else:
            rank = max(len(dims), 1)
            ctx.require(
                isinstance(axis, str) or -rank <= axis < rank,
                f"axis is {axis} and X has shape {list(dims)}; expected an axis between {-rank} and {rank - 1}",
            )
            ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class CumsumGrad(GradOpDef, of=Cumsum, reads="X", linear=True):
    r"""$$X@GRAD_j = \sum_{i \ge j} Out@GRAD_i$$ the sum in the other direction."""
