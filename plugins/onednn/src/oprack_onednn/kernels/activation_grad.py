"""Gradients of activations: dense arrays of equal strides are long rows. NumPy is as fast for relu and relu6."""

from __future__ import annotations

from oprack.kernel import Array

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import empty_like, memory_order
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.native import Attributes, MemoryDesc
from oprack_onednn.kernels.declare import onednn_kernel


def build(size: int, algorithm: str, alpha: float, beta: float) -> PrimitiveChain:
    """Chain over `size` elements: what the forward op read (or wrote, as the algorithm wants it), dy, dx."""
    row, kind, engine = MemoryDesc.strided((size,)), _c.ELTWISE[algorithm], LIBRARY.engine
    numbers = (alpha, beta)
    forward = primitive_desc(
        "eltwise_forward", engine, _c.FORWARD_TRAINING, kind, row, row, *numbers, Attributes(), any_speed=True
    )
    desc = primitive_desc("eltwise_backward", engine, kind, row, row, row, *numbers, forward, Attributes())
    chain = PrimitiveChain()
    known = _c.DST if algorithm.endswith("_use_dst") else _c.SRC
    memory = {known: chain.input(row), _c.DIFF_DST: chain.input(row), _c.DIFF_SRC: chain.output(row)}
    chain.add(desc, memory)
    return chain


def apply(known: Array, dy: Array, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """dx; NotImplemented when NumPy should do it."""
    if known.shape != dy.shape or known.strides != dy.strides or memory_order(dy.shape, dy.strides) is None:
        return NotImplemented
    if not dy.size:
        return NotImplemented
    chain = THREAD.primitive(("eltwise_grad", dy.size, algorithm, alpha, beta), build, dy.size, algorithm, alpha, beta)
    if chain is None:
        return NotImplemented
    dx = empty_like(dy)
    chain.run(known, dy, dx)
    return dx


@onednn_kernel("gelu_grad", min_numel="costly")
def gelu_grad(X: Array, Out_grad: Array, *, approximate: bool) -> Array:
    return apply(X, Out_grad, "gelu_tanh" if approximate else "gelu_erf")


@onednn_kernel("leaky_relu_grad", min_numel="eltwise")
def leaky_relu_grad(X: Array, Out_grad: Array, *, alpha: float) -> Array:
    return apply(X, Out_grad, "relu", alpha)


@onednn_kernel("sigmoid_grad", min_numel="binary")
def sigmoid_grad(Out: Array, Out_grad: Array) -> Array:
    return apply(Out, Out_grad, "logistic_use_dst")


@onednn_kernel("tanh_grad", min_numel="binary")
def tanh_grad(Out: Array, Out_grad: Array) -> Array:
    return apply(Out, Out_grad, "tanh_use_dst")


@onednn_kernel("swish_grad", min_numel="eltwise")
def swish_grad(X: Array, Out_grad: Array, *, beta: float) -> Array:
    return apply(X, Out_grad, "swish", beta)


@onednn_kernel("silu_grad", min_numel="eltwise")
def silu_grad(X: Array, Out: Array, Out_grad: Array) -> Array:
    if Out.shape != X.shape:
        return NotImplemented
    return apply(X, Out_grad, "swish", 1.0)


@onednn_kernel("hard_swish_grad", min_numel="eltwise")
def hard_swish_grad(X: Array, Out_grad: Array, *, threshold: float, scale: float, offset: float) -> Array:
    if scale != threshold:
        return NotImplemented
    return apply(X, Out_grad, "hardswish", 1 / scale, offset / scale)
