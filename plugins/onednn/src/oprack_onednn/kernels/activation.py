"""Element-wise activations: any dense array is one long row.

oneDNN's clipping loses NaN, and its gelu infinities; arrays that hold such are left to NumPy.
"""

from __future__ import annotations

from oprack.kernel import decline

from oprack_onednn import _c
from oprack_onednn.declare import onednn_kernel
from oprack_onednn.descs import primitive_desc
from oprack_onednn.kernels._special import NOT_ORDINARY, is_ordinary
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import empty_like, memory_order
from oprack_onednn.native import Attributes, MemoryDesc
from oprack_onednn.primitive_chain import THREAD, OneDNNError, PrimitiveChain


def build(size, algorithm, alpha, beta):
    """Chain of one activation over `size` elements."""
    row = MemoryDesc.strided((size,))
    kind, attributes = _c.ELTWISE[algorithm], Attributes()
    desc = primitive_desc(
        "eltwise_forward", LIBRARY.engine, _c.FORWARD_INFERENCE, kind, row, row, alpha, beta, attributes
    )
    chain = PrimitiveChain()
    chain.add(desc, {_c.SRC: chain.input(row), _c.DST: chain.output(row)})
    return chain


def run_in_place(y, algorithm, alpha, beta):
    """Replace what is in a row-major array by its activation."""
    chain = THREAD.primitive(("eltwise", y.size, algorithm, alpha, beta), build, y.size, algorithm, alpha, beta)
    if chain is None:
        raise OneDNNError(f"oneDNN: no implementation of {algorithm}")
    chain.run(y, y)


def apply(x, out, algorithm, alpha=0.0, beta=0.0):
    """The activation of x, in `out` when it has x's strides; NotImplemented when NumPy should do it."""
    if memory_order(x.shape, x.strides) is None:
        return decline("the array has gaps")
    chain = THREAD.primitive(("eltwise", x.size, algorithm, alpha, beta), build, x.size, algorithm, alpha, beta)
    if chain is None:
        return NotImplemented
    y = empty_like(x) if out is None or out.strides != x.strides else out
    chain.run(x, y)
    return y


@onednn_kernel("relu", min_numel="eltwise")
def relu(X, *, out=None):
    return apply(X, out, "relu")


@onednn_kernel("relu6", min_numel="eltwise")
def relu6(X, *, threshold, out=None):
    return apply(X, out, "clip_v2", 0.0, threshold) if is_ordinary(X) else decline(NOT_ORDINARY)


@onednn_kernel("leaky_relu", min_numel="eltwise")
def leaky_relu(X, *, alpha):
    return apply(X, None, "relu", alpha) if alpha else NotImplemented


@onednn_kernel("sigmoid", min_numel="eltwise")
def sigmoid(X, *, out=None):
    return apply(X, out, "logistic")


@onednn_kernel("tanh", min_numel="eltwise")
def tanh(X, *, out=None):
    return apply(X, out, "tanh")


@onednn_kernel("gelu", min_numel="costly")
def gelu(X, *, approximate):
    if approximate:
        return apply(X, None, "gelu_tanh")
    y = apply(X, None, "gelu_erf")
    return y if y is NotImplemented or is_ordinary(y) else decline(NOT_ORDINARY)


@onednn_kernel("swish", min_numel="eltwise")
def swish(X, *, beta):
    return apply(X, None, "swish", beta)


@onednn_kernel("hard_swish", min_numel="eltwise")
def hard_swish(X, *, threshold, scale, offset):
    if scale != threshold:
        return NotImplemented
    return apply(X, None, "hardswish", 1 / scale, offset / scale)


@onednn_kernel("hard_sigmoid", min_numel="eltwise")
def hard_sigmoid(X, *, slope, offset, out=None):
    return apply(X, out, "hardsigmoid", slope, offset) if is_ordinary(X) else decline(NOT_ORDINARY)


@onednn_kernel("silu", min_numel="eltwise")
def silu(X):
    return apply(X, None, "swish", 1.0)


@onednn_kernel("scale", min_numel="eltwise")
def scale(X, ScaleTensor=None, *, scale, bias, bias_after_scale, out=None):
    if ScaleTensor is not None:
        return NotImplemented
    return apply(X, out, "linear", scale, bias if bias_after_scale else scale * bias)
