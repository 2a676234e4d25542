"""sigmoid: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef
from oprack.op.families import USE_CUDNN, USE_MKLDNN, GradFromOut

from oprack_nn.ops.activation._family import Activation


class Sigmoid(Activation, type="sigmoid"):
    r"""$$Out = 1 / (1 + e^{-X})$$"""

    use_cudnn = USE_CUDNN
    use_mkldnn = USE_MKLDNN


class SigmoidGrad(GradFromOut, of=Sigmoid):
    r"""$$X@GRAD = Out@GRAD \cdot Out (1 - Out)$$"""


class SigmoidGradGrad(
    GradOpDef,
    of=SigmoidGrad,
    reads="Out Out@GRAD",
    like={"Out@GRAD": "Out"},
    names={"Out@GRAD": "fwd_grad_out", "X@GRAD": "grad_x"},
):
    r"""$$Out@GRAD = (1 - 2 Out) \cdot fwd\_grad\_out \cdot grad\_x@GRAD$$,
    $$fwd\_grad\_out@GRAD = Out (1 - Out) \cdot grad\_x@GRAD$$"""


class SigmoidTripleGrad(
    GradOpDef,
    of=SigmoidGradGrad,
    type="sigmoid_triple_grad",
    reads="Out fwd_grad_out grad_x@GRAD Out@GRAD@GRAD fwd_grad_out@GRAD@GRAD?",
    like={"fwd_grad_out": "Out", "grad_x@GRAD": "Out"},
    names={"grad_x@GRAD": "grad_grad_x", "fwd_grad_out@GRAD": "grad_grad_out", "Out@GRAD": "grad_out"},
):
    r"""Gradient of sigmoid_grad_grad. With $$a$$ = grad_out@GRAD, $$b$$ = grad_grad_out@GRAD, $$d$$ = fwd_grad_out and
    $$g$$ = grad_grad_x: $$Out@GRAD = (b (1 - 2 Out) - 2 a d) g$$, $$fwd\_grad\_out@GRAD = a (1 - 2 Out) g$$ and
    $$grad\_grad\_x@GRAD = a (1 - 2 Out) d + b Out (1 - Out)$$"""
