"""softmax, log_softmax and their gradients.

Of a row with NaN or plus infinity oneDNN makes NaN there alone, so such a result is left to NumPy. The step in C for
rows makes the whole of it NaN, as NumPy does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oprack.kernel import Array, KernelSpecialization, decline

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS, Outlet, is_channels_last
from oprack_onednn.chain.native_steps import NativeStep, widest_serves
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.kernels._numbers import NOT_ORDINARY, is_ordinary
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import (
    RowMajorPrimitive,
    ShapedPrimitive,
    SizedPrimitive,
    SizedRowMajorPrimitive,
    call_site,
)
from oprack_onednn.stretch.stretch import joins

_ALGORITHMS = {"softmax": _c.SOFTMAX_ACCURATE, "log_softmax": _c.SOFTMAX_LOG}


class SoftmaxPrimitive(RowMajorPrimitive):
    """Of arrays of one shape.

    Args:
        shape: Of the result.
        axis: Whose sums are 1.
        algorithm: Which of them.
        images: Whether these are [N, C, H, W] in channels-last memory.
    """

    def __init__(self, shape: tuple[int, ...], axis: int, algorithm: int, images: bool) -> None:
        self.shape, self.weights, self.chain = shape, {}, PrimitiveChain()
        self._axis, self._algorithm, self._images = axis, algorithm, images
        around = _around(shape, axis, images)
        desc = MemoryDesc.strided(around)
        memory = {_c.SRC: self.chain.input(desc), _c.DST: self.chain.output(desc)}
        self.is_faithful = _is_native(around)
        if self.is_faithful:
            self.chain.add(self._step(around), memory)
            return
        kind = _c.FORWARD_INFERENCE, algorithm, desc, desc, 1, Attributes()
        self.chain.add(primitive_desc("softmax_forward", LIBRARY.engine, *kind), memory)

    def _step(self, around: tuple[int, ...]) -> NativeStep:
        """The step of normalize.c, for which nothing is compiled."""
        return NativeStep("oprack_softmax", (*around, self._algorithm == _c.SOFTMAX_LOG))

    def resized(self, x: Array, *others: Array) -> ShapedPrimitive | None:
        if not self.is_faithful or x.ndim != len(self.shape) or not x.size:
            return None
        if not (is_channels_last(x) if self._images else x.flags.c_contiguous):
            return None
        around = _around(x.shape, self._axis, self._images)
        chain = self.chain.resized(self._step(around), 2 * x.nbytes) if len(around) == 2 else None
        return None if chain is None else (SizedPrimitive if self._images else SizedRowMajorPrimitive)(chain, x.shape)

    def outlet(self) -> Outlet:
        return ShapedPrimitive.outlet(self) if self._images else super().outlet()


def build_grad(shape: tuple[int, ...], algorithm: int) -> PrimitiveChain:
    """Chain of the gradient over the middle dim of [outer, n, inner]: y, dy, dx."""
    desc, engine = MemoryDesc.strided(shape), LIBRARY.engine
    forward = primitive_desc(
        "softmax_forward", engine, _c.FORWARD_TRAINING, algorithm, desc, desc, 1, Attributes(), any_speed=True
    )
    primitive = primitive_desc("softmax_backward", engine, algorithm, desc, desc, desc, 1, forward, Attributes())
    chain = PrimitiveChain()
    chain.add(primitive, {_c.DST: chain.input(desc), _c.DIFF_DST: chain.input(desc), _c.DIFF_SRC: chain.output(desc)})
    return chain


def _around(shape: tuple[int, ...], axis: int, images: bool) -> tuple[int, ...]:
    """[outer, n, inner], or [outer, n] when inner is 1, as for the channels of images in channels-last memory."""
    if images:
        return math.prod(shape) // shape[1], shape[1]
    axis %= len(shape)
    inner = math.prod(shape[axis + 1 :])
    return (math.prod(shape[:axis]), shape[axis], *([inner] if inner > 1 else []))


def _is_native(around: tuple[int, ...]) -> bool:
    """Whether the step in C serves, which makes of NaN and infinities what NumPy does."""
    return len(around) == 2 and widest_serves()


def _is_good(y: Array, axis: int) -> bool:
    """Whether a result is NumPy's, which has NaN in other places than oneDNN."""
    return _is_native(_around(y.shape, axis, not y.flags.c_contiguous)) or is_ordinary(y)


def _find(x: Array, axis: int, algorithm: int) -> SoftmaxPrimitive | None:
    if not -x.ndim <= axis < x.ndim or not x.size:
        return None
    images = not x.flags.c_contiguous
    if images and not (x.ndim == 4 and axis % 4 == 1 and is_channels_last(x)):
        return None
    key = (x.shape, axis, algorithm, images)
    return THREAD.primitive(("softmax", *key), SoftmaxPrimitive, *key)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    axis, algorithm = call.attrs["axis"], _ALGORITHMS[call.op_type]
    site = call_site(lambda x: _find(x, axis, algorithm))

    def run(x: Array) -> Array:
        y = site(x)
        return y if y is NotImplemented or _is_good(y, axis) else decline(NOT_ORDINARY)

    return joins(run, replace(site.joinable, looks_at="result"))


def _run(x: Array, axis: int, out: Array | None, algorithm: int) -> Array:
    found = _find(x, axis, algorithm)
    if found is None:
        return NotImplemented
    if out is None or out.strides != x.strides:
        y = found.run(x)
        return y if _is_good(y, axis) else decline(NOT_ORDINARY)
    if not found.is_faithful and not is_ordinary(x):  # out may be x's own memory
        return decline(NOT_ORDINARY)
    found.chain.run(x, out)
    return out


def apply_grad(y: Array, dy: Array, axis: int, algorithm: int) -> Array:
    if not -y.ndim <= axis < y.ndim or y.shape != dy.shape:
        return NotImplemented
    if not (y.size and y.flags.c_contiguous and dy.flags.c_contiguous):
        return NotImplemented
    shape = _around(y.shape, axis, images=False)
    chain = THREAD.primitive(("softmax_grad", shape, algorithm), build_grad, shape, algorithm)
    if chain is None:
        return NotImplemented
    dx = BUFFERS.take(y.shape)
    chain.run(y, dy, dx)
    return dx if is_ordinary(dx) else decline(NOT_ORDINARY)


@onednn_kernel("softmax", specialize=_specialize)
def softmax(X: Array, *, axis: int, out: Array | None = None) -> Array:
    return _run(X, axis, out, _c.SOFTMAX_ACCURATE)


@onednn_kernel("log_softmax", specialize=_specialize)
def log_softmax(X: Array, *, axis: int, out: Array | None = None) -> Array:
    return _run(X, axis, out, _c.SOFTMAX_LOG)


@onednn_kernel("softmax_grad", min_numel="binary")
def softmax_grad(Out: Array, Out_grad: Array, *, axis: int) -> Array:
    return apply_grad(Out, Out_grad, axis, _c.SOFTMAX_ACCURATE)


@onednn_kernel("log_softmax_grad", min_numel="eltwise")
def log_softmax_grad(Out: Array, Out_grad: Array, *, axis: int) -> Array:
    return apply_grad(Out, Out_grad, axis, _c.SOFTMAX_LOG)
