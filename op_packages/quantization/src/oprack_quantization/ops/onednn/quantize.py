"""quantize: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferVarTypeContext, OpVersion

from oprack_quantization.ops.onednn._family import Step


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
