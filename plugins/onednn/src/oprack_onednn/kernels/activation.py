"""Element-wise activations and their gradients: any dense array is one long row.

oneDNN's clipping loses NaN, and its gelu infinities; arrays that hold such are left to NumPy, which is as fast for the
gradient of relu6, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oprack.kernel import Array, KernelSpecialization, decline

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import Outlet, empty_like, memory_order
from oprack_onednn.chain.primitive_chain import OneDNNError, PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._dense import WHERE_POSITIVE, loop
from oprack_onednn.kernels._numbers import NOT_ORDINARY, is_ordinary
from oprack_onednn.kernels.declare import Limits, guarded, onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, call_site
from oprack_onednn.stretch.stretch import joins


def _over(row: MemoryDesc, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> PrimitiveDesc:
    """An activation of a row, which may take its own place."""
    numbers = _c.FORWARD_INFERENCE, _c.ELTWISE[algorithm], row, row, alpha, beta
    return primitive_desc("eltwise_forward", LIBRARY.engine, *numbers, Attributes())


def build(size: int, algorithm: str, alpha: float, beta: float) -> PrimitiveChain:
    """Chain of one activation over `size` elements."""
    row, chain = MemoryDesc.strided((size,)), PrimitiveChain()
    chain.add(_over(row, algorithm, alpha, beta), {_c.SRC: chain.input(row), _c.DST: chain.output(row)})
    return chain


def run_in_place(y: Array, algorithm: str, alpha: float, beta: float) -> None:
    """Replace what is in a row-major array by its activation."""
    chain = THREAD.primitive(("eltwise", y.size, algorithm, alpha, beta), build, y.size, algorithm, alpha, beta)
    if chain is None:
        raise OneDNNError(f"oneDNN: no implementation of {algorithm}")
    chain.run(y, y)


def apply(x: Array, out: Array | None, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """The activation of x, in `out` when it has x's strides; NotImplemented when NumPy should do it."""
    if memory_order(x.shape, x.strides) is None:
        return decline("the array has gaps")
    chain = THREAD.primitive(("eltwise", x.size, algorithm, alpha, beta), build, x.size, algorithm, alpha, beta)
    if chain is None:
        return NotImplemented
    y = empty_like(x) if out is None or out.strides != x.strides else out
    chain.run(x, y)
    return y


class _Exact(ShapedPrimitive):
    """An activation that gives NumPy's bits, of arrays with the shape and strides of x, which may have gaps."""

    def __init__(self, x: Array, algorithm: str) -> None:
        self.shape, self.strides, self.weights = x.shape, x.strides, {}
        if memory_order(x.shape, x.strides) is not None:
            self.chain = build(x.size, algorithm, 0.0, 0.0)
            return
        # the result, whose dims lie in the same order, gets a copy first
        strides, step = [0] * x.ndim, 1
        for d in sorted(range(x.ndim), key=lambda d: x.strides[d]):
            strides[d] = step
            step *= x.shape[d]
        self.strides = tuple(FLOAT.itemsize * s for s in strides)
        chain = self.chain = PrimitiveChain()
        copy = chain.reorder(chain.input(MemoryDesc.of(x)), chain.output(MemoryDesc.strided(x.shape, strides)))
        row = chain.alias(copy, MemoryDesc.strided((x.size,)))
        chain.add(_over(row.desc, algorithm), {_c.SRC: row, _c.DST: row})

    def outlet(self) -> Outlet:
        return Outlet(self.shape, self.strides)


def _joined(algorithm: str) -> Callable[[KernelSpecialization], Callable[..., Any]]:
    """`specialize` of an activation that gives NumPy's bits, so that small ones are part of stretches as well."""

    def find(x: Array) -> _Exact | None:
        if not x.size or min(x.strides, default=1) <= 0:
            return None
        found: _Exact | None = THREAD.primitive(("exact", algorithm, x.shape, x.strides), _Exact, x, algorithm)
        return found

    def specialize(call: KernelSpecialization) -> Callable[..., Any]:
        site = call_site(find)

        def activation(X: Array, *, out: Array | None = None) -> Array:
            found: Array = site(X) if out is None else guarded(apply, X, out, algorithm)
            return found

        def prepare(x: Array) -> Any:
            return site.joinable.prepare(x) if x.size >= Limits.eltwise else None

        return joins(activation, replace(site.joinable, is_exact=True, prepare=prepare))

    return specialize


@onednn_kernel("relu", min_numel="eltwise", specialize=_joined("relu"))
def relu(X: Array, *, out: Array | None = None) -> Array:
    return apply(X, out, "relu")


@onednn_kernel("square", min_numel="eltwise", specialize=_joined("square"))
def square(X: Array) -> Array:
    return apply(X, None, "square")


@onednn_kernel("sqrt", min_numel="eltwise", specialize=_joined("sqrt"))
def sqrt(X: Array, *, out: Array | None = None) -> Array:
    return apply(X, out, "sqrt")


@onednn_kernel("relu6", min_numel="eltwise")
def relu6(X: Array, *, threshold: float, out: Array | None = None) -> Array:
    return apply(X, out, "clip_v2", 0.0, threshold) if is_ordinary(X) else decline(NOT_ORDINARY)


@onednn_kernel("leaky_relu", min_numel="eltwise")
def leaky_relu(X: Array, *, alpha: float) -> Array:
    return apply(X, None, "relu", alpha) if alpha else NotImplemented


@onednn_kernel("sigmoid", min_numel="eltwise")
def sigmoid(X: Array, *, out: Array | None = None) -> Array:
    return apply(X, out, "logistic")


@onednn_kernel("tanh", min_numel="eltwise")
def tanh(X: Array, *, out: Array | None = None) -> Array:
    return apply(X, out, "tanh")


@onednn_kernel("gelu", min_numel="costly")
def gelu(X: Array, *, approximate: bool) -> Array:
    if approximate:
        return apply(X, None, "gelu_tanh")
    y = apply(X, None, "gelu_erf")
    return y if y is NotImplemented or is_ordinary(y) else decline(NOT_ORDINARY)


@onednn_kernel("swish", min_numel="eltwise")
def swish(X: Array, *, beta: float) -> Array:
    return apply(X, None, "swish", beta)


@onednn_kernel("hard_swish", min_numel="eltwise")
def hard_swish(X: Array, *, threshold: float, scale: float, offset: float) -> Array:
    if scale != threshold:
        return NotImplemented
    return apply(X, None, "hardswish", 1 / scale, offset / scale)


@onednn_kernel("hard_sigmoid", min_numel="eltwise")
def hard_sigmoid(X: Array, *, slope: float, offset: float, out: Array | None = None) -> Array:
    return apply(X, out, "hardsigmoid", slope, offset) if is_ordinary(X) else decline(NOT_ORDINARY)


@onednn_kernel("silu", min_numel="eltwise")
def silu(X: Array) -> Array:
    return apply(X, None, "swish", 1.0)


@onednn_kernel("scale", min_numel="eltwise")
def scale(
    X: Array,
    ScaleTensor: Array | None = None,
    *,
    scale: float,
    bias: float,
    bias_after_scale: bool,
    out: Array | None = None,
) -> Array:
    if ScaleTensor is not None:
        return NotImplemented
    return apply(X, out, "linear", scale, bias if bias_after_scale else scale * bias)


def build_grad(size: int, algorithm: str, alpha: float, beta: float) -> PrimitiveChain:
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


def apply_grad(known: Array, dy: Array, algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """dx; NotImplemented when NumPy should do it."""
    if known.shape != dy.shape or known.strides != dy.strides or memory_order(dy.shape, dy.strides) is None:
        return NotImplemented
    if not dy.size:
        return NotImplemented
    shape = (dy.size, algorithm, alpha, beta)
    chain = THREAD.primitive(("eltwise_grad", *shape), build_grad, *shape)
    if chain is None:
        return NotImplemented
    dx = empty_like(dy)
    chain.run(known, dy, dx)
    return dx


@onednn_kernel("relu_grad", min_numel="binary")
def relu_grad(Out: Array, Out_grad: Array, *, out: Array | None = None) -> Array:
    dx = loop(WHERE_POSITIVE, Out_grad, Out, out) if Out.shape == Out_grad.shape else None
    return NotImplemented if dx is None else dx


@onednn_kernel("gelu_grad", min_numel="costly")
def gelu_grad(X: Array, Out_grad: Array, *, approximate: bool) -> Array:
    return apply_grad(X, Out_grad, "gelu_tanh" if approximate else "gelu_erf")


@onednn_kernel("leaky_relu_grad", min_numel="eltwise")
def leaky_relu_grad(X: Array, Out_grad: Array, *, alpha: float) -> Array:
    return apply_grad(X, Out_grad, "relu", alpha)


@onednn_kernel("sigmoid_grad", min_numel="binary")
def sigmoid_grad(Out: Array, Out_grad: Array) -> Array:
    return apply_grad(Out, Out_grad, "logistic_use_dst")


@onednn_kernel("tanh_grad", min_numel="binary")
def tanh_grad(Out: Array, Out_grad: Array) -> Array:
    return apply_grad(Out, Out_grad, "tanh_use_dst")


@onednn_kernel("swish_grad", min_numel="eltwise")
def swish_grad(X: Array, Out_grad: Array, *, beta: float) -> Array:
    return apply_grad(X, Out_grad, "swish", beta)


@onednn_kernel("silu_grad", min_numel="eltwise")
def silu_grad(X: Array, Out: Array, Out_grad: Array) -> Array:
    if Out.shape != X.shape:
        return NotImplemented
    return apply_grad(X, Out_grad, "swish", 1.0)


@onednn_kernel("hard_swish_grad", min_numel="eltwise")
def hard_swish_grad(X: Array, Out_grad: Array, *, threshold: float, scale: float, offset: float) -> Array:
    if scale != threshold:
        return NotImplemented
    return apply_grad(X, Out_grad, "hardswish", 1 / scale, offset / scale)
