"""dequantize: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferVarTypeContext, OpVersion

from oprack_quantization.ops.onednn._family import Step


class Dequantize(Step, type="dequantize"):
    r"""$$Output = (Input - Shift) / Scale$$ as float32; bfloat16 numbers as they are."""

    Scale = Attr(1.0, "By what to divide.").check(lambda v: v != 0, "a value other than 0")
    Shift = Attr(0.0, "What was added.").between(0.0, 255.0)
    versions = OpVersion("dequantize").checkpoint("Numbers that are shifted.", ("new_attr", "Shift", 0.0))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Output", "float32")
