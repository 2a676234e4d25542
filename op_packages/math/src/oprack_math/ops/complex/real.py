"""real and its gradient."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, GradOpDef
from oprack.op.families import Unary

from oprack_math.ops.complex._family import complex_of_out_grad, part_of_x


class Real(Unary, type="real"):
    r"""$$Out = \operatorname{Re} X$$"""

    infer_var_type = part_of_x


class RealGrad(GradOpDef, of=Real, like="Out@GRAD"):
    r"""$$X@GRAD = Out@GRAD + 0i$$"""

    infer_var_type = complex_of_out_grad

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("real", X=fwd.output_grad("X@GRAD"), Out=fwd.input_grad("Out@GRAD"))
