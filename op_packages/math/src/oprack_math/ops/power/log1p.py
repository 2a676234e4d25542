"""log1p and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Log1p(Activation, type="log1p"):
    r"""$$Out = \ln(1 + X)$$ exact to rounding also near 0. Integers give float32."""

    infer_var_type = float_of_integers


class Log1pGrad(GradFromX, of=Log1p):
    r"""$$X@GRAD = Out@GRAD / (1 + X)$$"""
