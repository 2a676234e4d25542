"""conv2d_grad and depthwise_conv2d_grad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack.kernel import Array, KernelContext

from oprack_onednn import _c
from oprack_onednn.declare import onednn_kernel
from oprack_onednn.descs import primitive_desc
from oprack_onednn.kernels.conv2d import ConvShape
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, channels_last_desc, empty_image, image_desc
from oprack_onednn.native import Attributes, MemoryDesc, NotServedError
from oprack_onednn.primitive_chain import THREAD, PrimitiveChain

if TYPE_CHECKING:
    from oprack_onednn.native import PrimitiveDesc


class GradPrimitive:
    """Gradients of one convolution's input and filter; both chains take the operand, the gradient, and the result."""

    def __init__(
        self, x_shape: tuple[int, ...], x: Array, w: Array, dy: Array, *attrs: int | str | tuple[int, ...]
    ) -> None:
        geo = ConvShape(x_shape, w, *attrs)
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
        chosen = desc.desc(_c.QUERY_WEIGHTS_MD)
        arguments = {
            _c.WEIGHTS: raw if chosen == geo.filter_desc else chain.reorder(raw, chosen),
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
        result = chain.output(geo.filter_desc)
        chosen = desc.desc(_c.QUERY_DIFF_WEIGHTS_MD)
        inner = result if chosen == geo.filter_desc else chain.temporary(chosen)
        arguments = {
            _c.SRC: image if image.desc == self.source else chain.reorder(image, self.source),
            _c.DIFF_DST: given if given.desc == self.target else chain.reorder(given, self.target),
            _c.DIFF_WEIGHTS: inner,
        }
        chain.add(desc, arguments)
        if inner is not result:
            chain.reorder(inner, result)
        return chain


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
    window: Sequence[Sequence[int] | int | str],
    order: tuple[int, ...] | None,
    ctx: KernelContext,
) -> dict[str, Array]:
    """Those of Input and Filter that are wanted, of images or volumes [N, C, *spatial]; NotImplemented without one.

    window: strides, paddings, dilations, groups and padding algorithm. order: of the dims of Input@GRAD in the program,
    None when it is this one.
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
        grads["Filter_grad"] = dw = BUFFERS.take(w.shape)
        found.by_filter.run(x, dy, dw)
    return grads
