"""copysign and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output

from oprack_math.ops._broadcast import broadcast_last


class Copysign(OpDef, type="copysign"):
    r"""$$out = |x| \cdot \operatorname{sign}(y)$$ where the sign of a zero, or of NaN, is that of its sign bit."""

    x = Input("Tensor of any shape.")
    y = Input("Tensor of x's dtype whose shape broadcasts with x's.")
    out = Output("The broadcast shape, LoD of x.")

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "x", "y", "out")


class CopysignGrad(GradOpDef, of=Copysign, reads="x y"):
    r"""$$x@GRAD = out@GRAD \cdot \operatorname{sign} x \operatorname{sign} y,\quad y@GRAD = 0$$ and 0 where x is 0."""
