"""stack: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, normal_axis
from oprack.op.families import USE_MKLDNN
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Stack(OpDef, type="stack"):
    r"""$$Y_{\ldots, k, \ldots} = X[k]$$: joins tensors of one shape along a new dim `axis`."""

    X = Input("Tensors of one shape.", duplicable=True)
    Y = Output("Shape of X with a new dim of the number of tensors; LoD of X[0] unless it comes first.")
    axis = Attr(0, "Place of the new dim; negative counts from the end of Y.")
    use_mkldnn = USE_MKLDNN

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        made = list(names)
        made.insert(ctx.attr("axis", 0) % (len(names) + 1), None)
        return factors({"X": names}, {"Y": made}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
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


class StackGrad(GradOpDef, of=Stack, reads="Y@GRAD", shape_of="X?", linear=True):
    """X@GRAD[i] is place i of Y@GRAD along `axis`."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        for i in range(ctx.output_count("X@GRAD")):
            ctx.set_dim("X@GRAD", (*dims[:axis], *dims[axis + 1 :]), i)
            if i < ctx.input_count("X"):
                ctx.share_lod("X", "X@GRAD", i, i)
