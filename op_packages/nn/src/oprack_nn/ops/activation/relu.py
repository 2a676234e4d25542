"""relu: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef
from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromOut

from oprack_nn.ops.activation._family import Activation


class Relu(Activation, type="relu"):
    r"""$$Out = \max(X, 0)$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class ReluGrad(GradFromOut, of=Relu):
    r"""$$X@GRAD = Out@GRAD \cdot [Out > 0]$$"""


class ReluGradGrad(
    GradOpDef,
    of=ReluGrad,
    reads="X@GRAD@GRAD Out",
    grads_of="Out@GRAD",
    like="X@GRAD@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    r"""$$grad\_out@GRAD = grad\_x@GRAD \cdot [Out > 0]$$"""

    inplace = {"grad_x@GRAD": "grad_out@GRAD"}
