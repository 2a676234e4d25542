"""Steps into and out of quantised numbers that Paddle's passes for oneDNN put in."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, OpVersion, Output
from oprack.op.families import like


# What quantize, dequantize and requantize share.
class Step(OpDef):
    """A tensor of other numbers."""

    Input_ = Input("Tensor of any shape.")
    Output_ = Output("Shape and LoD of Input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Output", "Input")])


class Dequantize(Step, type="dequantize"):
    r"""$$Output = (Input - Shift) / Scale$$ as float32; bfloat16 numbers as they are."""

    Scale = Attr(1.0, "By what to divide.").check(lambda v: v != 0, "a value other than 0")
    Shift = Attr(0.0, "What was added.").between(0.0, 255.0)
    versions = OpVersion("dequantize").checkpoint("Numbers that are shifted.", ("new_attr", "Shift", 0.0))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Output", "float32")


class Quantize(Step, type="quantize"):
    r"""$$Output = \operatorname{round}(Scale \cdot Input + Shift)$$ as int8 or, where Shift is not 0 or no input is
    negative, uint8; bfloat16 with `bfloat16`."""

    is_negative_input = Attr(False, "Whether Input has negative numbers.")
    Scale = Attr(1.0, "Factor.").check(lambda v: v != 0, "a value other than 0")
    Shift = Attr(0.0, "What is added.").between(0.0, 255.0)
    output_format = Attr("NHWC", "Paddle: layout of memory.")
    bfloat16 = Attr(False, "Round to bfloat16 instead.")
    versions = (
        OpVersion("quantize")
        .checkpoint("bfloat16 numbers.", ("new_attr", "bfloat16", False))
        .checkpoint("Numbers that are shifted.", ("new_attr", "Shift", 0.0))
    )

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        signed = ctx.attrs["is_negative_input"] and ctx.attrs["Shift"] == 0
        ctx.set_dtype("Output", "bfloat16" if ctx.attrs["bfloat16"] else "int8" if signed else "uint8")


class Requantize(Step, type="requantize"):
    r"""$$Output = \operatorname{round}\left(\frac{Scale\_out}{Scale\_in} (Input - Shift\_in) + Shift\_out\right)$$ in
    the type of Input."""

    Scale_in = Attr(1.0, "Scale of Input.").check(lambda v: v != 0, "a value other than 0")
    Scale_out = Attr(1.0, "Scale of Output.").check(lambda v: v != 0, "a value other than 0")
    Shift_in = Attr(1.0, "Shift of Input.")
    Shift_out = Attr(1.0, "Shift of Output.")
    versions = OpVersion("requantize").checkpoint(
        "Numbers that are shifted.", ("new_attr", "Shift_in", 1.0), ("new_attr", "Shift_out", 1.0)
    )
