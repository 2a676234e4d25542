"""stack: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of, normal_axis
from oprack.op.families import USE_MKLDNN


class Stack(OpDef, type="stack"):
    """Joins tensors of one shape along a new dim `axis`."""

    X = Input("Tensors of one shape.", duplicable=True)
    Y = Output("Shape of X with a new dim of the number of tensors; LoD of X[0] unless it comes first.")
    axis = Attr(0, "Place of the new dim; negative counts from the end of Y.")
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx):
        shapes = ctx.dims("X")
        first = shapes[0]
        for s in shapes[1:]:
            same = len(s) == len(first) and all(a == b or a < 0 or b < 0 for a, b in zip(s, first, strict=True))
            ctx.require(same, f"X has tensors of shapes {list(first)} and {list(s)}; expected equal shapes")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(first) + 1)
        merged = [max(d) for d in zip(*shapes, strict=True)]
        ctx.set_dim("Y", (*merged[:axis], len(shapes), *merged[axis:]))
        if axis:
            ctx.share_lod("X", "Y")

    def make_grad(fwd):
        return GradOp(
            "stack_grad",
            X=fwd.input("X"),
            Y_grad=fwd.output_grad("Y"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class StackGrad(GradOpDef, type="stack_grad"):
    """X@GRAD[i] is place i of Y@GRAD along `axis`."""

    Y_grad = Input("Gradient of Y.")
    X = Input("The stacked tensors; only their number and LoD are read.", duplicable=True, dispensable=True)
    X_grad = Output("Shape of each X.", duplicable=True)
    axis = Attr(0, "As in stack.")
    use_mkldnn = USE_MKLDNN
    no_need_buffer_vars = ("X",)
    expected_kernel_type = dtype_of("Y@GRAD")

    def infer_shape(ctx):
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        for i in range(ctx.output_count("X@GRAD")):
            ctx.set_dim("X@GRAD", (*dims[:axis], *dims[axis + 1 :]), i)
            if i < ctx.input_count("X"):
                ctx.share_lod("X", "X@GRAD", i, i)

    def make_grad(fwd):
        return GradOp("stack", X=fwd.output_grad("X@GRAD"), Y=fwd.input_grad("Y@GRAD"), attrs=fwd.attrs)
