"""Bases that definitions of element-wise ops share, in any pack: slots and shape rules, of their gradients as well.

class Relu(Unary, type="relu"):
    ...

class ReluGrad(GradFromOut, of=Relu):
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.deprecation import deprecated
from oprack.op.attrs import Attr
from oprack.op.definition import OpDef
from oprack.op.forward_op import ForwardOp
from oprack.op.grad import GradOp
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


def __getattr__(name: str) -> Any:
    """Makers of gradients from before gradient ops named their forward op; for one release."""
    makers = {
        "grad_from_x": (_grad_maker("X"), "class ReluGrad(GradFromX, of=Relu)"),
        "grad_from_out": (_grad_maker("Out"), "class ReluGrad(GradFromOut, of=Relu)"),
        "double_grad_from_x": (_double_grad, "class ReluGradGrad(DoubleGradFromX, of=ReluGrad)"),
    }
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    maker, now = makers[name]
    deprecated(
        f"oprack.op.families.{name}",
        f"leave make_grad out of the op and write its gradient as `{now}`, which gives it one",
    )
    return maker


def _grad_maker(slot: str) -> Callable[[ForwardOp], GradOp]:
    def make_grad(fwd: ForwardOp) -> GradOp:
        slots = {slot: fwd.input(slot) if slot == "X" else fwd.output(slot)}
        slots |= {"Out@GRAD": fwd.output_grad("Out"), "X@GRAD": fwd.input_grad("X")}
        return GradOp(fwd.type + "_grad", attrs=fwd.attrs, slots=slots)

    return make_grad


def _double_grad(op_type: str) -> Callable[[ForwardOp], GradOp]:
    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            op_type,
            X=fwd.input("X"),
            grad_out=fwd.input("Out@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            X_grad=fwd.input_grad("X"),
            grad_out_grad=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )

    return make_grad
