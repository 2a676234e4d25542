"""Element-wise activations: any dense array is one long row.

oneDNN's clipping loses NaN, and its gelu infinities; arrays that hold such are left to NumPy.
"""

from __future__ import annotations

from oprack_onednn import _c
from oprack_onednn.kernels._special import is_ordinary
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import empty_like, memory_order
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.plan import THREAD, OneDNNError, Plan
from oprack_onednn.served import served


def build(size, algorithm, alpha, beta):
    """Plan of one activation over `size` elements."""
    row = MemoryDesc.strided((size,))
    kind, attributes = _c.ELTWISE[algorithm], Attributes()
    desc = PrimitiveDesc(
        "eltwise_forward", LIBRARY.engine, _c.FORWARD_INFERENCE, kind, row, row, alpha, beta, attributes
    )
    plan = Plan()
    plan.add(desc, {_c.SRC: plan.input(row), _c.DST: plan.output(row)})
    return plan


def run_in_place(y, algorithm, alpha, beta):
    """Replace what is in a row-major array by its activation."""
    plan = THREAD.plan(("eltwise", y.size, algorithm, alpha, beta), build, y.size, algorithm, alpha, beta)
    if plan is None:
        raise OneDNNError(f"oneDNN: no implementation of {algorithm}")
    plan.run(y, y)


def apply(x, out, algorithm, alpha=0.0, beta=0.0):
    """The activation of x, in `out` when it has x's strides; NotImplemented when NumPy should do it."""
    if memory_order(x.shape, x.strides) is None:
        return NotImplemented
    plan = THREAD.plan(("eltwise", x.size, algorithm, alpha, beta), build, x.size, algorithm, alpha, beta)
    if plan is None:
        return NotImplemented
    y = empty_like(x) if out is None or out.strides != x.strides else out
    plan.run(x, y)
    return y


@served("relu", min_numel="eltwise")
def relu(X, *, out=None, ctx):
    return apply(X, out, "relu")


@served("relu6", min_numel="eltwise")
def relu6(X, *, threshold, out=None, ctx):
    return apply(X, out, "clip_v2", 0.0, threshold) if is_ordinary(X) else NotImplemented


@served("leaky_relu", min_numel="eltwise")
def leaky_relu(X, *, alpha, ctx):
    return apply(X, None, "relu", alpha) if alpha else NotImplemented


@served("sigmoid", min_numel="eltwise")
def sigmoid(X, *, out=None, ctx):
    return apply(X, out, "logistic")


@served("tanh", min_numel="eltwise")
def tanh(X, *, out=None, ctx):
    return apply(X, out, "tanh")


@served("gelu", min_numel="costly")
def gelu(X, *, approximate, ctx):
    if approximate:
        return apply(X, None, "gelu_tanh")
    y = apply(X, None, "gelu_erf")
    return NotImplemented if y is NotImplemented or not is_ordinary(y) else y


@served("swish", min_numel="eltwise")
def swish(X, *, beta, ctx):
    return apply(X, None, "swish", beta)


@served("hard_swish", min_numel="eltwise")
def hard_swish(X, *, threshold, scale, offset, ctx):
    if scale != threshold:
        return NotImplemented
    return apply(X, None, "hardswish", 1 / scale, offset / scale)


@served("hard_sigmoid", min_numel="eltwise")
def hard_sigmoid(X, *, slope, offset, out=None, ctx):
    return apply(X, out, "hardsigmoid", slope, offset) if is_ordinary(X) else NotImplemented


@served("silu", min_numel="eltwise")
def silu(X, *, ctx):
    return apply(X, None, "swish", 1.0)


@served("scale", min_numel="eltwise")
def scale(X, ScaleTensor=None, *, scale, bias, bias_after_scale, out=None, ctx):
    if ScaleTensor is not None:
        return NotImplemented
    return apply(X, out, "linear", scale, bias if bias_after_scale else scale * bias)
