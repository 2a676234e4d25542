"""imag and its gradient."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, GradOpDef
from oprack.op.families import Unary

from oprack_math.ops.complex._family import complex_of_out_grad, part_of_x


class Imag(Unary, type="imag"):
    r"""$$Out = \operatorname{Im} X$$"""

    infer_var_type = part_of_x


class ImagGrad(GradOpDef, of=Imag, like="Out@GRAD"):
    r"""$$X@GRAD = 0 + i\,Out@GRAD$$"""

    infer_var_type = complex_of_out_grad

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("imag", X=fwd.output_grad("X@GRAD"), Out=fwd.input_grad("Out@GRAD"))
