"""unstack: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, normal_axis


class Unstack(OpDef, type="unstack"):
    """Y[i] is place i of X along `axis`, without that dim."""

    X = Input("Tensor of rank 1 or more.")
    Y = Output("`num` tensors.", duplicable=True)
    axis = Attr(0, "Dim to take apart; negative counts from the end.")
    num = Attr(0, "Size of that dim, or 0.")

    def infer_shape(ctx):
        dims, num = ctx.dim("X"), ctx.output_count("Y")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        ctx.require(
            dims[axis] in (-1, num),
            f"Y has {num} variables but X {list(dims)} has {dims[axis]} places along axis {axis}; expected one each",
        )
        ctx.set_dims("Y", [(*dims[:axis], *dims[axis + 1 :])] * num)

    def make_grad(fwd):
        return GradOp("unstack_grad", Y_grad=fwd.output_grad("Y"), X_grad=fwd.input_grad("X"), attrs=fwd.attrs)


class UnstackGrad(GradOpDef, type="unstack_grad"):
    """X@GRAD stacks the gradients of Y along `axis`."""

    Y_grad = Input("Gradients of Y.", duplicable=True)
    X_grad = Output("Shape of X.")
    axis = Attr(0, "As in unstack.")
    num = Attr(0, "As in unstack.")

    def infer_shape(ctx):
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims) + 1)
        ctx.set_dim("X@GRAD", (*dims[:axis], ctx.input_count("Y@GRAD"), *dims[axis:]))
