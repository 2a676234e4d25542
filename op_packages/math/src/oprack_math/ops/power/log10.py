"""log10 and its gradient."""

from __future__ import annotations

from oprack.op.families import GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Log10(Activation, type="log10"):
    r"""$$Out = \log_{10} X$$ Integers give float32."""

    infer_var_type = float_of_integers


class Log10Grad(GradFromX, of=Log10):
    r"""$$X@GRAD = Out@GRAD / (X \ln 10)$$"""
