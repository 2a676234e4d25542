"""conv2d and depthwise_conv2d, and conv2d_post_ops: a convolution with what follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization
from oprack.op.families import resolve_pads
from oprack.tensor import numpy_dtype
from oprack_nn.ops.precision import is_narrow, rounds_output

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, image_desc
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._conv_shape import ConvShape
from oprack_onednn.kernels._convolution import Layer, layers_primitive
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site, varying


class ConvPrimitive(ShapedPrimitive):
    """A convolution of one shape: source and result in channels-last memory, weights as the primitive likes them."""

    def __init__(
        self,
        x: Array,
        w: Array,
        residual: Array | None,
        strides: tuple[int, ...],
        paddings: tuple[int, ...],
        dilations: tuple[int, ...],
        groups: int,
        padding: str,
        constant: bool,
        bias: bool,
        post_ops: tuple[str, ...],
        rounded: bool,
        bfloat16: bool,
    ) -> None:
        geo = ConvShape(x.shape, w, strides, paddings, dilations, groups, padding, trim=not constant)
        self.shape = geo.shape
        if residual is not None and residual.shape != self.shape:
            raise NotServedError("a residual of another shape")
        source, result = channels_last_desc(x.shape), channels_last_desc(self.shape)
        row = MemoryDesc.strided((w.shape[0],)) if bias else None
        added_desc = None if residual is None else result.bfloat16 if residual.dtype.itemsize == 2 else result
        attributes, at = as_post_ops(post_ops, None if added_desc is None else geo.seen(added_desc))
        # rows of one channel have nothing to add up: they are as fast as they are read
        bfloat16 = bfloat16 and (not geo.depthwise or x.dtype.itemsize == 2)
        source = source.bfloat16 if bfloat16 else source
        target = result.bfloat16 if rounded else result
        self.dtype = numpy_dtype("bfloat16") if rounded else FLOAT
        result = target if bfloat16 else result
        desc = geo.forward(geo.seen(source), geo.seen(result), row, attributes)
        chain = self.chain = PrimitiveChain()
        given = chain.input(image_desc(x))
        # Constant filters come packed by the caller; others are copied in every run, since they may have changed.
        raw, wdesc = geo.filter_desc, desc.desc(_c.QUERY_WEIGHTS_MD)
        self.weights = {1: Weights(raw, wdesc)} if constant else {}
        weights: Memory = chain.input(wdesc if constant else raw)
        if geo.part is not None:
            weights = chain.alias(weights, *geo.part)
        memory: dict[int, Memory] = {}
        if row is not None:
            memory[_c.BIAS] = chain.input(row)
        if at is not None:
            assert residual is not None and added_desc is not None
            # oneDNN numbers the operands of post-ops by their place in the chain.
            added = chain.in_layout(chain.input(image_desc(residual)), added_desc)
            memory[_c.POST_OP * (at + 1) | _c.SRC_1] = chain.reinterpret(added, geo.seen(added_desc))
        written = chain.output(target)
        computed: Memory = written if result == target else chain.temporary(result)
        memory[_c.DST] = chain.reinterpret(computed, geo.seen(result))
        memory[_c.SRC] = chain.reinterpret(chain.in_layout(given, source), geo.seen(source))
        memory[_c.WEIGHTS] = weights if constant else chain.in_layout(weights, wdesc)
        chain.add(desc, memory)
        if computed is not written:
            chain.reorder(computed, written)


class RowPrimitive(ShapedPrimitive):
    """A 1x1 convolution of 1x1 images: [n, c] times [c, k].

    Sums over c are taken in parts, which are then added: means of images come so, and scale whole images.
    """

    def __init__(self, x: Array, w: Array, constant: bool, bias: bool, post_ops: tuple[str, ...]) -> None:
        rows = x.shape[0]
        k, c = w.shape[:2]
        self.shape, self.weights = (rows, k, 1, 1), {}
        chain = self.chain = PrimitiveChain()
        given = chain.input(MemoryDesc.strided((rows, c)))
        strided, engine = MemoryDesc.strided, LIBRARY.engine
        # Partial sums keep the rounding error of long rows near that of NumPy's pairwise sums.
        parts = next(p for p in (16, 8, 4, 2, 1) if c % p == 0 and c // p >= min(c, 16))
        width = c // parts
        source, split, result = strided((parts, rows, width), (width, c, 1)), strided((parts, rows, k)), (rows, 1, k)
        view = strided((parts, width, k), (width, 1, c))
        row = strided((1, 1, k)) if bias else None
        attributes, _ = as_post_ops(post_ops)
        after, empty = (row, split, attributes), (None, split, Attributes())
        wanted = MemoryDesc.any((parts, width, k)) if constant else view
        first = primitive_desc("matmul", engine, source, wanted, *(after if parts == 1 else empty))
        chosen = first.desc(_c.QUERY_WEIGHTS_MD)
        if constant:
            self.weights[len(chain.external)] = Weights(view, chosen)
        arguments: dict[int, Memory] = {_c.SRC: chain.alias(given, source), _c.WEIGHTS: chain.input(chosen)}
        extra = {} if row is None else {_c.BIAS: chain.input(row)}
        if parts == 1:
            chain.add(first, {**arguments, **extra, _c.DST: chain.output(split)})
            return
        partial, target = chain.temporary(split), chain.output(strided(result))
        chain.add(first, {**arguments, _c.DST: partial})
        # adding up is a product with ones, which takes bias and post-ops
        total = strided((rows, parts, k), (k, rows * k, 1))
        ones = Memory(strided((rows, 1, parts)), np.ones((rows, 1, parts), np.float32))
        second = primitive_desc("matmul", engine, ones.desc, total, row, target.desc, attributes)
        chain.add(second, {_c.SRC: ones, _c.WEIGHTS: chain.alias(partial, total), **extra, _c.DST: target})


def build(
    x: Array,
    w: Array,
    residual: Array | None,
    strides: tuple[int, ...],
    paddings: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
    padding: str,
    constant: bool,
    bias: bool,
    post_ops: tuple[str, ...],
    rounded: bool,
    bfloat16: bool,
) -> ShapedPrimitive:
    """The primitive that suits the shapes; in float32 where oneDNN has none that multiplies in bfloat16."""
    # The convolutions of squeeze-and-excite blocks: a matrix product is faster, and rounds better.
    single = x.shape[2:] == (1, 1) == w.shape[2:] and groups == 1 and w.flags.c_contiguous and x.flags.c_contiguous
    single = single and x.dtype == FLOAT and not rounded
    if single and x.size and w.shape[1] >= 32 and residual is None and (padding != "EXPLICIT" or not any(paddings)):
        return RowPrimitive(x, w, constant, bias, post_ops)
    images = [x] if residual is None else [x, residual]
    plain = constant and not (rounded or bfloat16) and all(a.ndim == 4 for a in images)
    # SAME has other zeros around images of another size
    if plain and padding != "SAME" and {*dilations} == {1} and w.flags.c_contiguous:
        (top, bottom), (left, right) = resolve_pads(padding, paddings, x.shape[2:], w.shape[2:], strides)
        layer = Layer((strides[0], strides[1]), (top, bottom, left, right), groups, 0 if bias else None, post_ops)
        native = layers_primitive([layer], x, [w], residual)
        if native is not None:
            return native
    given = x, w, residual, strides, paddings, dilations, groups, padding, constant, bias, post_ops, rounded
    if bfloat16:
        with suppress(NotServedError):
            return ConvPrimitive(*given, True)
    return ConvPrimitive(*given, False)


def find_primitive(
    x: Array,
    w: Array,
    residual: Array | None,
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    padding: str,
    bias: bool = False,
    post_ops: Sequence[str] = (),
    rounded: bool = False,
    bfloat16: bool = False,
) -> ShapedPrimitive:
    """The primitive for these shapes and attributes; None when there is none."""
    attrs = (
        *(tuple(strides), tuple(paddings), tuple(dilations), groups, padding, is_constant(w), bias, tuple(post_ops)),
        *(rounded, bfloat16),
    )
    second = None if residual is None else (residual.shape, residual.strides, residual.dtype.char)
    key = ("conv2d", x.shape, x.strides, x.dtype.char, w.shape, w.strides, second, attrs)
    return THREAD.primitive(key, build, x, w, residual, *attrs)


def window_of(attrs: Mapping[str, Any]) -> tuple[list[int], list[int], list[int], int, str]:
    """The values of `own_attrs`, as `find_primitive` takes them."""
    return attrs["strides"], attrs["paddings"], attrs["dilations"], attrs["groups"], attrs["padding_algorithm"]


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A convolution alone, of images in the program's order of dims."""
    if call.attrs["data_format"] == "NHWC":
        return None
    window = window_of(call.attrs)
    return call_site(lambda x, w: find_primitive(x, w, None, *window))


@onednn_kernel("conv2d", "depthwise_conv2d", specialize=_specialize)
def conv2d(
    Input: Array,
    Filter: Array,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    groups: int,
    padding_algorithm: str,
    data_format: str,
) -> Array:
    x = Input.transpose(0, 3, 1, 2) if data_format == "NHWC" else Input
    chain = find_primitive(x, Filter, None, strides, paddings, dilations, groups, padding_algorithm)
    if chain is None:
        return NotImplemented
    y = chain.run(x, Filter)
    return y.transpose(0, 2, 3, 1) if data_format == "NHWC" else y


def _find_fused(
    x: Array, w: Array, bias: Array | None, residual: Array | None, attrs: Mapping[str, Any]
) -> ShapedPrimitive | None:
    if bias is not None and (bias.ndim != 1 or not bias.flags.c_contiguous):
        return None
    narrow = rounds_output(attrs), is_narrow(attrs)
    return find_primitive(x, w, residual, *window_of(attrs), bias is not None, attrs["post_ops"], *narrow)


def _specialize_fused(call: KernelSpecialization) -> Callable[..., Any]:
    attrs = call.attrs

    def find(x: Array, w: Array, bias: Array | None = None, residual: Array | None = None) -> ShapedPrimitive | None:
        return _find_fused(x, w, bias, residual, attrs)

    free, dtypes = varying(call, {"Input": 0, "Residual": 3})
    return call_site(find, free, dtypes=dtypes)


@onednn_kernel("conv2d_post_ops", specialize=_specialize_fused, unread=("Input", "Residual"))
def conv2d_post_ops(
    Input: Array, Filter: Array, Bias: Array | None = None, Residual: Array | None = None, *, ctx: KernelContext
) -> Array:
    attrs = ctx.attrs
    return attempt(lambda x, w, bias, residual: _find_fused(x, w, bias, residual, attrs), Input, Filter, Bias, Residual)
