"""brelu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr
from oprack.op.families import GradFromX

from oprack_nn.ops.activation._family import Activation


class Brelu(Activation, type="brelu"):
    r"""$$Out = \min(\max(X, t\_min), t\_max)$$"""

    t_min = Attr(0.0, "Lower bound.")
    t_max = Attr(24.0, "Upper bound.")


class BreluGrad(GradFromX, of=Brelu):
    r"""$$X@GRAD = Out@GRAD \cdot [t\_min < X < t\_max]$$"""
