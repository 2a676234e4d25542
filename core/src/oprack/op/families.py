"""What definitions of any pack share: bases of element-wise ops and of their gradients, and sizes of sliding windows.

class Relu(Unary, type="relu"):
    ...

class ReluGrad(GradFromOut, of=Relu):
    ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.op.attrs import Attr
from oprack.op.definition.grad_op_def import GradOpDef
from oprack.op.definition.op_def import OpDef
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


def out_like_x(ctx: Any) -> None:
    """An infer_shape: Out has the shape and LoD of X."""
    like(ctx, [("Out", "X")])


class Unary(OpDef):
    """An element-wise function of one input."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape and LoD of X.")
    sbp = unary
    infer_shape = out_like_x


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


Pads = list[tuple[int, int]]


def pad_pairs(paddings: Sequence[int], rank: int) -> Pads:
    """(before, after) per spatial dim from a list of one per dim, or of one per side."""
    if len(paddings) == rank:
        return [(p, p) for p in paddings]
    return [(paddings[2 * i], paddings[2 * i + 1]) for i in range(rank)]


def resolve_pads(
    algorithm: str, paddings: Sequence[int], spatial: Sequence[int], ksize: Sequence[int], strides: Sequence[int]
) -> Pads:
    """(before, after) per spatial dim. SAME gives ceil(in / stride) outputs, VALID pads nothing.

    SAME counts the kernel without dilation, as Paddle, which convolves with dilation 1 then.
    """
    if algorithm == "VALID":
        return [(0, 0)] * len(spatial)
    if algorithm == "SAME":
        total = [max((-(-x // s) - 1) * s + k - x, 0) for x, k, s in zip(spatial, ksize, strides, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    return pad_pairs(paddings, len(spatial))


def conv_out(size: int, k: int, pad: tuple[int, int], stride: int, dilation: int) -> int:
    """Outputs along one dim; -1 when the input's size or the kernel's is not known."""
    return -1 if size < 0 or k < 0 else (size + pad[0] + pad[1] - (dilation * (k - 1) + 1)) // stride + 1
