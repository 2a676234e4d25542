"""conv2d_grad and depthwise_conv2d_grad."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS, TRAINING_BUFFERS, channels_last_desc, empty_image, image_desc
from oprack_onednn.chain.parameters import pack
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels._conv_shape import ConvShape
from oprack_onednn.kernels.declare import onednn_kernel

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import PrimitiveDesc


_SIDE, _WINDOW, _EXACT = 16, 64, 1 << 24


class _Filter(Structure):
    """The struct of layout.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("outputs", "inputs", "window")),
        *((name, c_void_p) for name in ("blocked", "plain")),
    )


def in_blocks(shape: tuple[int, ...], geo: ConvShape, layout: MemoryDesc) -> bool:
    """Whether a layout of a filter is that of layout.c, which a filter of numbered elements shows."""
    outputs, inputs, *window = shape
    size = math.prod(shape)
    # buffers, and nothing smaller, begin with a cache line
    if RUNNER.plain_filter is None or not BUFFERS.size_of(layout.nbytes):
        return False
    if geo.filter_shape != shape or layout.nbytes != FLOAT.itemsize * size or size > _EXACT:
        return False
    if outputs % _SIDE or inputs % _SIDE or math.prod(window) > _WINDOW:
        return False
    numbers = np.arange(size, dtype=FLOAT).reshape(shape)
    blocks = numbers.reshape(outputs // _SIDE, _SIDE, inputs // _SIDE, _SIDE, -1).transpose(0, 2, 4, 3, 1)
    return bool((pack(geo.filter_desc, layout, numbers) == blocks.reshape(-1)).all())


class GradPrimitive:
    """Gradients of one convolution's input and filter; both chains take the operand, the gradient, and the result.

    Attributes:
        blocked: Numbers of the filter's gradient where its chain leaves it in blocks; else 0.
    """

    def __init__(self, x_shape: tuple[int, ...], x: Array, w: Array, dy: Array, *attrs: Any) -> None:
        given = (*attrs, True)  # trim
        geo = ConvShape(x_shape, w, *given)
        if geo.shape != dy.shape:
            raise NotServedError("a gradient of another shape")
        self.source, self.target = channels_last_desc(x_shape), channels_last_desc(dy.shape)
        self.geo, forward = geo, geo.forward(self.source, self.target, None, Attributes())
        self.by_input = self._by_input(geo, w, dy, forward)
        self.by_filter = self._by_filter(geo, x, w, dy, forward)

    def _by_input(self, geo: ConvShape, w: Array, dy: Array, forward: PrimitiveDesc) -> PrimitiveChain:
        tail = (*geo.window, forward, Attributes())
        kind = (LIBRARY.engine, _c.CONVOLUTION_DIRECT)
        weights = MemoryDesc.any(geo.filter_shape)
        desc = primitive_desc("convolution_backward_data", *kind, self.source, weights, self.target, *tail)
        chain = PrimitiveChain()
        raw, given = chain.input(geo.filter_desc), chain.input(image_desc(dy))
        chosen, used = desc.desc(_c.QUERY_WEIGHTS_MD), raw if geo.part is None else chain.alias(raw, *geo.part)
        arguments = {
            _c.WEIGHTS: used if chosen == used.desc else chain.reorder(used, chosen),
            _c.DIFF_DST: given if given.desc == self.target else chain.reorder(given, self.target),
            _c.DIFF_SRC: chain.output(self.source),
        }
        chain.add(desc, arguments)
        return chain

    def _by_filter(self, geo: ConvShape, x: Array, w: Array, dy: Array, forward: PrimitiveDesc) -> PrimitiveChain:
        tail = (*geo.window, forward, Attributes())
        kind = (LIBRARY.engine, _c.CONVOLUTION_DIRECT)
        weights = MemoryDesc.any(geo.filter_shape)
        desc = primitive_desc("convolution_backward_weights", *kind, self.source, weights, None, self.target, *tail)
        chain = PrimitiveChain()
        image, given = chain.input(image_desc(x)), chain.input(image_desc(dy))
        chosen = desc.desc(_c.QUERY_DIFF_WEIGHTS_MD)
        self.blocked = chosen.nbytes // FLOAT.itemsize if in_blocks(w.shape, geo, chosen) else 0
        result = chain.output(chosen if self.blocked else geo.filter_desc)
        target = result if geo.part is None else chain.alias(result, *geo.part)
        inner = target if self.blocked or chosen == target.desc else chain.temporary(chosen)
        arguments = {
            _c.SRC: image if image.desc == self.source else chain.reorder(image, self.source),
            _c.DIFF_DST: given if given.desc == self.target else chain.reorder(given, self.target),
            _c.DIFF_WEIGHTS: inner,
        }
        chain.add(desc, arguments)
        if inner is not target:
            chain.reorder(inner, target)
        return chain

    def filter_gradient(self, x: Array, dy: Array, shape: tuple[int, ...]) -> Array:
        """The gradient of the filter, in the program's order."""
        result = TRAINING_BUFFERS.take(shape)
        if self.geo.part is not None:
            result.fill(0)  # taps that see nothing but padding
        if not self.blocked:
            self.by_filter.run(x, dy, result)
            return result
        blocks = BUFFERS.take((self.blocked,))
        self.by_filter.run(x, dy, blocks)
        outputs, inputs, *window = shape
        assert RUNNER.plain_filter is not None
        filter_ = _Filter(outputs, inputs, math.prod(window), address(blocks), address(result))
        RUNNER.plain_filter(addressof(filter_), self.by_filter.threads)
        return result


@onednn_kernel("conv2d_grad", "depthwise_conv2d_grad")
def conv2d_grad(
    Input: Array,
    Filter: Array,
    Output_grad: Array,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    groups: int,
    padding_algorithm: str,
    data_format: str,
    ctx: KernelContext,
) -> dict[str, Array]:
    last = data_format == "NHWC"
    x, dy = (a.transpose(0, 3, 1, 2) if last else a for a in (Input, Output_grad))
    window = (strides, paddings, dilations, groups, padding_algorithm)
    return gradients("conv2d_grad", x, Filter, dy, window, (0, 2, 3, 1) if last else None, ctx)


def gradients(
    op_type: str,
    x: Array,
    w: Array,
    dy: Array,
    window: tuple[Sequence[int], Sequence[int], Sequence[int], int, str],
    order: tuple[int, ...] | None,
    ctx: KernelContext,
) -> dict[str, Array]:
    """Those of Input and Filter that are wanted, of images or volumes [N, C, *spatial]; NotImplemented without one.

    Args:
        window: Strides, paddings, dilations, groups and padding algorithm.
        order: Of the dims of Input@GRAD in the program, None when it is this one.
    """
    strides, paddings, dilations, *others = window
    attrs = (tuple(strides), tuple(paddings), tuple(dilations), *others)
    key = (op_type, x.shape, x.strides, w.shape, w.strides, dy.shape, dy.strides, attrs)
    found = THREAD.primitive(key, GradPrimitive, x.shape, x, w, dy, *attrs)
    if found is None:
        return NotImplemented
    grads = {}
    if ctx.wants("Input@GRAD"):
        dx = empty_image(x.shape)
        found.by_input.run(w, dy, dx)
        grads["Input_grad"] = dx if order is None else dx.transpose(order)
    if ctx.wants("Filter@GRAD"):
        grads["Filter_grad"] = found.filter_gradient(x, dy, w.shape)
    return grads
