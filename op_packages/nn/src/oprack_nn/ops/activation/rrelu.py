"""rrelu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class RRelu(OpDef, type="rrelu"):
    r"""$$Out = X$$ where $$X \ge 0$$, else $$a X$$ with a slope drawn from U(lower, upper) per element;
    with is_test $$a = (lower + upper) / 2$$"""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    Noise = Output("Slopes in effect: 1 where X is not negative.", intermediate=True, extra=True)
    is_test = Attr(False, "Use the mean slope.")
    lower = Attr(0.125, "Smallest slope.").between(0.0, 1.0)
    upper = Attr(1.0 / 3.0, "Largest slope.").between(0.0, 1.0)

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.attr("lower") <= ctx.attr("upper"),
            f"lower is {ctx.attr('lower')} and upper {ctx.attr('upper')}; expected lower <= upper",
        )
        for slot in ("Out", "Noise"):
            ctx.set_dim(slot, ctx.dim("X"))
            ctx.share_lod("X", slot)


class RReluGrad(GradOpDef, of=RRelu, reads="Noise", shape_of="X"):
    r"""$$X@GRAD = Noise \cdot Out@GRAD$$"""
