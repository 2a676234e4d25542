"""unstack: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Unstack(OpDef, type="unstack"):
    r"""$$Y[i] = X_{\ldots, i, \ldots}$$ along `axis`, without that dim."""

    X = Input("Tensor of rank 1 or more.")
    Y = Output("`num` tensors.", duplicable=True)
    axis = Attr(0, "Dim to take apart; negative counts from the end.")
    num = Attr(0, "Size of that dim, or 0.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", 0) % len(names)
        names[axis] = None
        return factors({"X": names}, {"Y": names[:axis] + names[axis + 1 :]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, num = ctx.dim("X"), ctx.output_count("Y")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        ctx.require(
            dims[axis] in (-1, num),
            f"Y has {num} variables but X {list(dims)} has {dims[axis]} places along axis {axis}; expected one each",
        )
        ctx.set_dims("Y", [(*dims[:axis], *dims[axis + 1 :])] * num)


class UnstackGrad(GradOpDef, of=Unstack, linear=True):
    """X@GRAD stacks the gradients of Y along `axis`."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims) + 1)
        ctx.set_dim("X@GRAD", (*dims[:axis], ctx.input_count("Y@GRAD"), *dims[axis:]))
