"""expm1 and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromOut

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Expm1(Activation, type="expm1"):
    r"""$$Out = e^X - 1$$ exact to rounding also near 0. Integers give float32."""

    infer_var_type = float_of_integers


class Expm1Grad(GradFromOut, of=Expm1):
    r"""$$X@GRAD = Out@GRAD (Out + 1)$$"""
