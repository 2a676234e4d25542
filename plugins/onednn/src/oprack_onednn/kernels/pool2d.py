"""pool2d and its gradient: sliding windows, and adaptive ones that all have one size.

oneDNN's maximum passes over NaN, and begins with the least finite number: images with NaN or infinities go to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, KernelContext, KernelSpecialization, decline
from oprack.op.families import resolve_pads

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, empty_image, image_desc, is_channels_last
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, dims
from oprack_onednn.kernels._numbers import NOT_ORDINARY, is_ordinary
from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, call_site
from oprack_onednn.stretch.stretch import joins

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory, PrimitiveDesc


def _counts(
    spatial: Sequence[int],
    pads: Sequence[tuple[int, int]],
    ksize: Sequence[int],
    strides: Sequence[int],
    ceil_mode: bool,
) -> tuple[int, ...]:
    """How many windows there are along each dim; with ceil_mode the last one may reach over the edge."""
    extra = [t - 1 if ceil_mode else 0 for t in strides]
    sizes = zip(spatial, pads, ksize, strides, extra, strict=True)
    return tuple((s + a + b - k + e) // t + 1 for s, (a, b), k, t, e in sizes)


def _algorithm(kind: str, exclusive: bool, before: Sequence[int], after: Sequence[int]) -> int:
    """oneDNN's pooling algorithm for paddings in front of the image and behind it. Raises NotServedError."""
    if kind != "avg":
        return _c.POOLING_MAX
    if exclusive or not (any(before) or any(a > 0 for a in after)):
        return _c.POOLING_AVG_EXCLUDE_PADDING
    # Paddle counts padding as wide behind as in front, and nothing beyond it
    if after != before:
        raise NotServedError("padding that differs between the sides counts")
    return _c.POOLING_AVG_INCLUDE_PADDING


class PoolShape:
    """What pooling of one shape comes to: shape of the result, algorithm, windows as oneDNN wants them.

    Raises NotServedError for windows that it counts or sees otherwise than Paddle.
    """

    def __init__(
        self,
        x_shape: tuple[int, ...],
        kind: str,
        ksize: tuple[int, ...],
        strides: tuple[int, ...],
        paddings: tuple[int, ...],
        algorithm: str,
        is_global: bool,
        ceil_mode: bool,
        exclusive: bool,
        adaptive: bool,
    ) -> None:
        n, c, *spatial = x_shape
        if 0 in x_shape:
            raise NotServedError("an empty tensor")
        out: tuple[int, ...]
        pads = [(0, 0), (0, 0)]
        if is_global:
            ksize, strides, out = tuple(spatial), (1, 1), (1, 1)
        elif adaptive:
            if kind == "max" or any(s % k for s, k in zip(spatial, ksize, strict=True)):
                raise NotServedError("windows of several sizes")
            out = tuple(ksize)
            ksize = strides = tuple(s // k for s, k in zip(spatial, ksize, strict=True))
        else:
            pads = resolve_pads(algorithm, paddings, spatial, ksize, strides)
            out = _counts(spatial, pads, ksize, strides, ceil_mode)
        before = [a for a, _ in pads]
        # oneDNN wants the size of the result to follow from the paddings exactly
        after = [(o - 1) * t + k - s - a for s, a, o, k, t in zip(spatial, before, out, ksize, strides, strict=True)]
        if min(before) < 0 or min(out) < 1 or any(e >= k for e, k in zip((*before, *after), ksize * 2, strict=True)):
            raise NotServedError("windows that see nothing")
        self.algorithm = _algorithm(kind, exclusive or adaptive, before, after)
        self.shape = (n, c, *out)
        self.source, self.target = channels_last_desc(x_shape), channels_last_desc(self.shape)
        self.window = (dims(strides), dims(ksize), dims((0, 0)), dims(before), dims(after))

    def forward(self, kind: int) -> PrimitiveDesc:
        """The primitive descriptor for inference or training."""
        arguments = (LIBRARY.engine, kind, self.algorithm, self.source, self.target, *self.window, Attributes())
        return primitive_desc("pooling_forward", *arguments)


class PoolPrimitive(ShapedPrimitive):
    """Pooling of one shape."""

    def __init__(self, x: Array, *attrs: Any) -> None:
        geo = PoolShape(x.shape, *attrs)
        self.shape, self.weights = geo.shape, {}
        chain = self.chain = PrimitiveChain()
        given = chain.input(image_desc(x))
        result = chain.output(geo.target)
        inner = given if given.desc == geo.source else chain.reorder(given, geo.source)
        chain.add(geo.forward(_c.FORWARD_INFERENCE), {_c.SRC: inner, _c.DST: result})


def build_grad(x: Array, dy: Array, *attrs: Any) -> PrimitiveChain:
    """Chain: x, dy, dx. Where the maxima were is found by pooling once more."""
    geo = PoolShape(x.shape, *attrs)
    if dy.shape != geo.shape:
        raise NotServedError("a gradient of another shape")
    hint = geo.forward(_c.FORWARD_TRAINING)
    arguments = (LIBRARY.engine, geo.algorithm, geo.source, geo.target, *geo.window, hint, Attributes())
    desc = primitive_desc("pooling_backward", *arguments)
    chain = PrimitiveChain()
    given, gradient, result = chain.input(image_desc(x)), chain.input(image_desc(dy)), chain.output(geo.source)
    memory: dict[int, Memory] = {_c.DIFF_SRC: result}
    memory[_c.DIFF_DST] = gradient if gradient.desc == geo.target else chain.reorder(gradient, geo.target)
    if geo.algorithm == _c.POOLING_MAX:
        inner = given if given.desc == geo.source else chain.reorder(given, geo.source)
        # Where each maximum was, which the forward op does not keep.
        memory[_c.WORKSPACE] = chain.temporary(hint.desc(_c.QUERY_WORKSPACE_MD))
        chain.add(hint, {_c.SRC: inner, _c.DST: chain.temporary(geo.target), _c.WORKSPACE: memory[_c.WORKSPACE]})
    chain.add(desc, memory)
    return chain


_ATTRS = (
    "pooling_type", "ksize", "strides", "paddings", "padding_algorithm", "global_pooling", "ceil_mode", "exclusive",
    "adaptive",
)  # fmt: skip


def _known(attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(tuple(v) if isinstance(v, list) else v for v in map(attrs.__getitem__, _ATTRS))


def _is_left(x: Array) -> bool:
    """Whether NumPy is faster; but for an image of this library it would end what runs in one call."""
    return x.size < Limits.eltwise and not (x.ndim == 4 and is_channels_last(x))


def find_primitive(x: Array, attrs: tuple[Any, ...]) -> PoolPrimitive | None:
    """The primitive for images [N, C, H, W]; None when NumPy should do it."""
    if x.ndim != 4 or _is_left(x):
        return None
    return THREAD.primitive(("pool2d", x.shape, x.strides, attrs), PoolPrimitive, x, *attrs)


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """Pooling of images in the program's order of dims."""
    if call.attrs["data_format"] == "NHWC":
        return None
    attrs = _known(call.attrs)
    site = call_site(lambda x: find_primitive(x, attrs))
    if call.attrs["pooling_type"] != "max":
        return site

    def run(x: Array) -> Array:
        return site(x) if _is_left(x) or is_ordinary(x) else decline(NOT_ORDINARY)

    return joins(run, replace(site.joinable, looks_at="input"))


@onednn_kernel("pool2d", specialize=_specialize)
def pool(X: Array, *, ctx: KernelContext) -> Array:
    last = ctx.attrs["data_format"] == "NHWC" and X.ndim == 4
    x = X.transpose(0, 3, 1, 2) if last else X
    chain = find_primitive(x, _known(ctx.attrs))
    if chain is None or (ctx.attrs["pooling_type"] == "max" and not is_ordinary(x)):
        return NotImplemented
    y = chain.run(x)
    return y.transpose(0, 2, 3, 1) if last else y


@onednn_kernel("pool2d_grad")
def pool_grad(X: Array, Out_grad: Array, *, ctx: KernelContext) -> Array:
    if X.size < Limits.eltwise or X.ndim != 4 or Out_grad.ndim != 4:
        return NotImplemented
    last = ctx.attrs["data_format"] == "NHWC"
    x, dy = (a.transpose(0, 3, 1, 2) if last else a for a in (X, Out_grad))
    attrs = _known(ctx.attrs)
    chain = THREAD.primitive(
        ("pool2d_grad", x.shape, x.strides, dy.shape, dy.strides, attrs), build_grad, x, dy, *attrs
    )
    if chain is None:
        return NotImplemented
    dx = empty_image(x.shape)
    chain.run(x, dy, dx)
    return dx.transpose(0, 2, 3, 1) if last else dx
