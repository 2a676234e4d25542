"""log, with gradients to second order."""

from __future__ import annotations

from oprack.op.families import DoubleGradFromX, GradFromX

from oprack_math.ops._unary import Activation
from oprack_math.ops.power._family import float_of_integers


class Log(Activation, type="log"):
    r"""$$Out = \ln X$$ Integers give float32."""

    infer_var_type = float_of_integers


class LogGrad(GradFromX, of=Log):
    r"""$$X@GRAD = Out@GRAD / X$$"""


class LogGradGrad(DoubleGradFromX, of=LogGrad):
    r"""$$grad\_out@GRAD = grad\_x@GRAD / X,\quad X@GRAD = -grad\_out \cdot grad\_x@GRAD / X^2$$"""
