"""What quantize, dequantize and requantize share."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output
from oprack.op.families import like


class Step(OpDef):
    """A tensor of other numbers."""

    Input_ = Input("Tensor of any shape.")
    Output_ = Output("Shape and LoD of Input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Output", "Input")])
