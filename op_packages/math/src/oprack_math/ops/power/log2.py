"""log2 and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Log2(Activation, type="log2"):
    r"""$$Out = \log_2 X$$ Integers give float32."""

    infer_var_type = float_of_integers


class Log2Grad(GradFromX, of=Log2):
    r"""$$X@GRAD = Out@GRAD / (X \ln 2)$$"""
