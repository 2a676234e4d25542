"""Bases that definitions of element-wise ops share, in any pack: slots and shape rules, of their gradients as well.

class Relu(Unary, type="relu"):
    ...

class ReluGrad(GradFromOut, of=Relu):
    ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.op.attrs import Attr
from oprack.op.definition import OpDef
from oprack.op.grad_definition import GradOpDef
from oprack.op.proto import Input, Output
from oprack.op.sbp import unary

# Attributes by which Paddle chooses a kernel library; programs carry them, oprack chooses by kernels' priorities.
USE_CUDNN = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
USE_MKLDNN = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
USE_QUANTIZER = Attr(False, "Paddle: marked for quantisation.", extra=True)
MKLDNN_DATA_TYPE = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)


def like(ctx: Any, pairs: Sequence[tuple[str, str]]) -> None:
    """Part of a shape rule: give outputs the shape and LoD of inputs; `pairs` are (output, input)."""
    for out, source in pairs:
        if ctx.has_input(source):
            ctx.set_dim(out, ctx.dim(source))
            ctx.share_lod(source, out)


def fitting_grad(ctx: Any, slot: str, grad: str) -> None:
    """Part of an infer_shape: a gradient has as many elements as what it is the gradient of."""
    ctx.same_size(slot, grad)


class Unary(OpDef):
    """An element-wise function of one input."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    sbp = unary

    def infer_shape(ctx):
        like(ctx, [("Out", "X")])


class GradFromX(GradOpDef):
    """Gradient of a Unary whose derivative is a function of X."""

    X = Input("Input of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of X.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        fitting_grad(ctx, "X", "Out@GRAD")
        like(ctx, [("X@GRAD", "X")])


class GradFromOut(GradOpDef):
    """Gradient of a Unary whose derivative is a function of Out."""

    Out = Input("Output of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X, shape of Out.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "Out")])


class DoubleGradFromX(GradOpDef, names={"Out@GRAD": "grad_out", "X@GRAD": "grad_x"}):
    """Gradient of a GradFromX that depends on X and on Out@GRAD."""

    X = Input("Input of the forward op.")
    grad_out = Input("Gradient of Out.")
    grad_x_grad = Input("Gradient of X@GRAD.")
    X_grad = Output("Gradient of X, shape of X.")
    grad_out_grad = Output("Gradient of Out@GRAD, shape of X.")
    inplace = {"grad_x@GRAD": "grad_out@GRAD"}

    def infer_shape(ctx):
        like(ctx, [("X@GRAD", "X"), ("grad_out@GRAD", "X")])
