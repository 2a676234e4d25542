"""requantize: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, OpVersion

from oprack_quantization.ops.onednn._family import Step


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
