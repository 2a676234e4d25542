"""nextafter: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.op.sbp import binary

from oprack_math.ops._broadcast import broadcast_last


class Nextafter(OpDef, type="nextafter"):
    r"""$$out = x \pm \epsilon(x)$$ the number of the dtype that follows x towards y; y where both are equal."""

    x = Input("Tensor of any shape.")
    y = Input("Tensor whose shape broadcasts with x's.")
    out = Output("The broadcast shape, LoD of x.")
    make_grad = empty_grad
    sbp = binary(slots=("x", "y", "out"))

    def infer_shape(ctx: InferShapeContext) -> None:
        broadcast_last(ctx, "x", "y", "out")
