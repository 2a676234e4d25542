"""conv2d_transpose and depthwise_conv2d_transpose, and conv2d_transpose_post_ops: with what follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from oprack.kernel import Array
from oprack.op.families import resolve_pads

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import channels_last_desc, empty_image, image_desc
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, element_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Memory, MemoryDesc, dims
from oprack_onednn.kernels._steps import as_post_ops
from oprack_onednn.kernels.declare import onednn_kernel


def filter_view(w: Array, groups: int) -> Array:
    """Filter [C, K / groups, kh, kw] as [K, C, kh, kw], or as [groups, K / groups, C / groups, kh, kw]."""
    if groups == 1:
        return w.transpose(1, 0, 2, 3)
    c, *rest = w.shape
    return w.reshape(groups, c // groups, *rest).transpose(0, 2, 1, 3, 4)


class Extent(NamedTuple):
    """The spatial dims of a transposed convolution's result, and what is cut off before and behind them."""

    out: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]


def extent_of(
    x: Array,
    w: Array,
    strides: tuple[int, int],
    paddings: tuple[int, ...],
    dilations: tuple[int, int],
    algorithm: str,
    output_size: tuple[int, ...],
    output_padding: tuple[int, ...],
) -> Extent:
    """The extent of the result for images and filter. Raises NotServedError."""
    spatial, ksize = x.shape[2:], w.shape[2:]
    pads = resolve_pads(algorithm, paddings, spatial, ksize, strides)
    reach = [(s - 1) * t + d * (q - 1) + 1 for s, q, t, d in zip(spatial, ksize, strides, dilations, strict=True)]
    out = [r - a - b for r, (a, b) in zip(reach, pads, strict=True)]
    if output_size:
        out = list(output_size)
    elif output_padding:
        out = [o + e for o, e in zip(out, output_padding, strict=True)]
    before = [a for a, _ in pads]
    if 0 in x.shape or 0 in w.shape or min(before) < 0 or min(out) < 1 or not w.flags.c_contiguous:
        raise NotServedError("negative padding, an empty tensor or a filter that is a view")
    behind = [r - a - o for r, a, o in zip(reach, before, out, strict=True)]
    return Extent(tuple(out), tuple(before), tuple(behind))


class TransposePrimitive(NamedTuple):
    """A transposed convolution of one shape.

    Attributes:
        chain: Takes images, filter, the result and the bias, if there is one.
        shape: Of the result, in channels-last memory.
        weights: The packed filter; None when the filter may change, and the chain reads it as it is.
        copies: How often the bias stands in its memory, one after the other.
    """

    chain: PrimitiveChain
    shape: tuple[int, ...]
    weights: Weights | None
    copies: int = 1


def convolution(
    x: Array,
    w: Array,
    strides: tuple[int, int],
    paddings: tuple[int, ...],
    dilations: tuple[int, int],
    groups: int,
    algorithm: str,
    output_size: tuple[int, ...],
    output_padding: tuple[int, ...],
    bias: bool,
    constant: bool,
    post_ops: tuple[str, ...],
) -> TransposePrimitive:
    """The primitive for any shape. Raises NotServedError."""
    if algorithm == "SAME":
        dilations = (1, 1)
    extent = extent_of(x, w, strides, paddings, dilations, algorithm, output_size, output_padding)
    shape = (x.shape[0], w.shape[1] * groups, *extent.out)
    source, view = channels_last_desc(x.shape), filter_view(w, groups)
    filters, row = MemoryDesc.strided(view.shape, element_strides(view)), MemoryDesc.strided((shape[1],))
    desc = primitive_desc(
        "deconvolution_forward",
        LIBRARY.engine,
        _c.FORWARD_INFERENCE,
        _c.DECONVOLUTION_DIRECT,
        source,
        MemoryDesc.any(view.shape),
        row if bias else None,
        channels_last_desc(shape),
        dims(strides),
        dims(d - 1 for d in dilations),
        dims(extent.before),
        dims(extent.behind),
        as_post_ops(post_ops)[0],
    )
    chain = PrimitiveChain()
    images = chain.input(image_desc(x))
    packed = desc.desc(_c.QUERY_WEIGHTS_MD)
    weights: Memory = chain.input(packed if constant else filters)
    if not constant and filters != packed:
        weights = chain.reorder(weights, packed)
    arguments: dict[int, Memory] = {_c.WEIGHTS: weights, _c.DST: chain.output(channels_last_desc(shape))}
    if bias:
        arguments[_c.BIAS] = chain.input(row)
    arguments[_c.SRC] = images if images.desc == source else chain.reorder(images, source)
    chain.add(desc, arguments)
    return TransposePrimitive(chain, shape, Weights(filters, packed) if constant else None)


def tile_product(x: Array, w: Array, bias: bool, constant: bool, post_ops: tuple[str, ...]) -> TransposePrimitive:
    """The primitive where taps do not overlap: each pixel becomes a tile, and all tiles are one product.

    Filter [C, K, kh, kw] is read as [C, kh, kw, K], so that the product's rows are tiles in channels-last memory.
    """
    n, c, height, width = x.shape
    _, k, kh, kw = w.shape
    tile = kh * kw * k
    view = MemoryDesc.strided((c, kh, kw, k), (tile, kw, 1, kh * kw))
    dense, matrix = MemoryDesc.strided((c, kh, kw, k)), MemoryDesc.strided((c, tile))
    source, rows = channels_last_desc(x.shape), MemoryDesc.strided((n * height * width, tile))
    row = MemoryDesc.strided((1, tile)) if bias else None
    pixels = MemoryDesc.strided((n * height * width, c))
    desc = primitive_desc("matmul", LIBRARY.engine, pixels, matrix, row, rows, as_post_ops(post_ops)[0])
    chain = PrimitiveChain()
    images = chain.input(image_desc(x))
    weights: Memory = chain.input(matrix if constant else view)
    target = chain.output(MemoryDesc.strided((n, height, kh, width, kw, k)))
    arguments = {} if row is None else {_c.BIAS: chain.input(row)}
    inner = chain.alias(images if images.desc == source else chain.reorder(images, source), pixels)
    if not constant:
        weights = chain.alias(chain.reorder(weights, dense), matrix)
    product = chain.temporary(rows)
    chain.add(desc, {_c.SRC: inner, _c.WEIGHTS: weights, _c.DST: product, **arguments})
    strides = (height * width * tile, width * tile, kw * k, tile, k, 1)
    tiles = MemoryDesc.strided((n, height, kh, width, kw, k), strides)
    chain.reorder(chain.alias(product, tiles), target)
    shape = (n, k, height * kh, width * kw)
    return TransposePrimitive(chain, shape, Weights(view, dense) if constant else None, kh * kw)


def build(x: Array, w: Array, *attrs: Any) -> TransposePrimitive:
    """The primitive that suits the shapes."""
    strides, paddings, dilations, groups, padding, output_size, output_padding, bias, constant, post_ops = attrs
    size = tuple(s * t for s, t in zip(x.shape[2:], strides, strict=True))
    simple = groups == 1 and set(dilations) == {1} and padding != "SAME" and not any(output_padding)
    if simple and not any(paddings) and tuple(strides) == w.shape[2:] and output_size in ((), size):
        if x.size and w.size and w.flags.c_contiguous:
            return tile_product(x, w, bias, constant, post_ops)
    return convolution(x, w, *attrs)


def compute(
    x: Array,
    w: Array,
    bias: Array | None,
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    padding: str,
    output_size: Sequence[int],
    output_padding: Sequence[int],
    post_ops: Sequence[str] = (),
) -> Array | None:
    """The result for [N, C, H, W]; None when there is no primitive."""
    if w.shape[0] != x.shape[1] or (bias is not None and (bias.ndim != 1 or not bias.flags.c_contiguous)):
        return None
    attrs = (
        *(tuple(strides), tuple(paddings), tuple(dilations), groups, padding),
        *(tuple(output_size), tuple(output_padding), bias is not None, is_constant(w), tuple(post_ops)),
    )
    key = ("conv2d_transpose", x.shape, x.strides, w.shape, w.strides, attrs)
    found = THREAD.primitive(key, build, x, w, *attrs)
    if found is None:
        return None
    y = empty_image(found.shape)
    weights = w if found.weights is None else found.weights.of(w)
    if bias is None:
        found.chain.run(x, weights, y)
    else:
        row = bias if found.copies == 1 else np.tile(bias.reshape(-1), found.copies)
        found.chain.run(x, weights, y, row)
    return y


@onednn_kernel("conv2d_transpose", "depthwise_conv2d_transpose")
def conv2d_transpose(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    groups: int,
    padding_algorithm: str,
    output_size: list[int],
    output_padding: list[int],
    data_format: str,
) -> Array:
    x = Input.transpose(0, 3, 1, 2) if data_format == "NHWC" else Input
    attrs = (strides, paddings, dilations, groups, padding_algorithm, output_size, output_padding)
    y = compute(x, Filter, Bias, *attrs)
    if y is None:
        return NotImplemented
    return y.transpose(0, 2, 3, 1) if data_format == "NHWC" else y


@onednn_kernel("conv2d_transpose_post_ops")
def conv2d_transpose_post_ops(
    Input: Array,
    Filter: Array,
    Bias: Array | None = None,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    groups: int,
    padding_algorithm: str,
    output_padding: list[int],
    post_ops: list[str],
) -> Array:
    attrs = (strides, paddings, dilations, groups, padding_algorithm, (), output_padding)
    y = compute(Input, Filter, Bias, *attrs, post_ops)
    return NotImplemented if y is None else y
