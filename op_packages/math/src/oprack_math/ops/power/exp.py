"""exp and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromOut

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Exp(Activation, type="exp"):
    r"""$$Out = e^X$$ Integers give float32."""

    infer_var_type = float_of_integers


class ExpGrad(GradFromOut, of=Exp):
    r"""$$X@GRAD = Out@GRAD \cdot Out$$"""
