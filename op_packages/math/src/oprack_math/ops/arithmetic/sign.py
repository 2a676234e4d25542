"""sign: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp
from oprack.op.families import Unary


class Sign(Unary, type="sign"):
    r"""$$Out = -1, 0, 1 \text{ for negative, zero, positive } X$$"""

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {"scale": 0.0, "bias": 0.0, "bias_after_scale": True}
        return GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)
