"""hard_shrink: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, OpVersion
from oprack.op.families import GradFromX

from oprack_nn.ops.activation._family import Activation


class HardShrink(Activation, type="hard_shrink"):
    r"""$$Out = X \cdot [X < -threshold \lor X > threshold]$$"""

    threshold = Attr(0.5, "Half the width of the flat part.")
    versions = OpVersion("hard_shrink").checkpoint(
        "a negative threshold keeps X, where both conditions used to count twice", ("bugfix", "threshold", None)
    )


class HardShrinkGrad(GradFromX, of=HardShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [X < -threshold \lor X > threshold]$$"""
