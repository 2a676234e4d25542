"""conj: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp
from oprack.op.families import Unary


class Conj(Unary, type="conj"):
    r"""$$Out = \overline{X}$$ Real numbers stay as they are."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("conj", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))
