"""softshrink: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromX

from oprack_nn.ops.activation._family import Activation


class SoftShrink(Activation, type="softshrink"):
    r"""$$Out = X - lambda$$ where $$X > lambda$$, $$X + lambda$$ where $$X < -lambda$$, else 0"""

    lambda_ = Attr(0.5, "Half the width of the flat part.")


class SoftShrinkGrad(GradFromX, of=SoftShrink):
    r"""$$X@GRAD = Out@GRAD \cdot [|X| > lambda]$$"""
