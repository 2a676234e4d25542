"""squeeze: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef

from oprack_tensor.ops.shape._squeeze import SqueezeOp


class Squeeze(SqueezeOp, type="squeeze"):
    r"""$$Out.flat = X.flat$$ without those of X's dims `axes` that have size 1; without all such dims when `axes` is
    empty.
    """


class SqueezeGrad(GradOpDef, of=Squeeze, reads="Out@GRAD", shape_of="X", linear=True):
    """X@GRAD is Out@GRAD in the shape of X."""

    inplace = {"Out@GRAD": "X@GRAD"}
