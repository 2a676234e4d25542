"""Convolutions in a row, of one group or of a channel each, as a step in C for any size (c/convolution.c)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from oprack.op.families import conv_out
from oprack_nn.ops.post_ops import RESIDUAL

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import aligned_empty, channels_last_desc, image_desc, is_channels_last
from oprack_onednn.chain.native_steps import NativeStep, widest_serves
from oprack_onednn.chain.parameters import FromConstants, Weights
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, External
from oprack_onednn.kernels._implementation import is_read_once
from oprack_onednn.kernels._steps import KINDS, functions
from oprack_onednn.stretch.callsite import ShapedPrimitive, SizedPrimitive

if TYPE_CHECKING:
    from oprack.kernel import Array

    from oprack_onednn.dnnl.objects import Memory

MOST = 16
"""Layers of a step, as chain.c has it."""
_LANES = 16  # of a register
_FUNCTIONS = 2  # that follow a layer at most
_KINDS = KINDS | {"gelu_erf": -1}  # which layers.h has besides
# Channels of pictures.
_FEW_CHANNELS = 4
# Weights of a window from which on a primitive takes a tenth less time, or more, unless a tile holds all outputs.
_MOST_OF_WINDOW, _OUTPUTS_OF_TILE = 1 << 16, 64
# Products of halves save less than they cost with fewer weights or pixels; with more weights than this these are read
# from memory, where they are 7 / 4 as many.
_LEAST_WEIGHTS, _MOST_WEIGHTS, _LEAST_PIXELS = 96 * 192, 1 << 19, 96


class Window(NamedTuple):
    """How a convolution goes through images: (along rows, along columns) each.

    Attributes:
        before: Zeros above and to the left.
        after: Zeros below and to the right.
    """

    taps: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    before: tuple[int, int] = (0, 0)
    after: tuple[int, int] = (0, 0)

    def results(self, size: Sequence[int]) -> list[int]:
        """Rows and columns of the results for images of so many."""
        dims = zip(size, self.taps, self.strides, self.before, self.after, strict=True)
        return [(pixels + before + after - taps) // stride + 1 for pixels, taps, stride, before, after in dims]

    @property
    def is_pixel(self) -> bool:
        """Whether results are products of single pixels, one for each."""
        return self.taps == self.strides == (1, 1) and not any(self.before + self.after)


class Layer(NamedTuple):
    """One convolution, as an op has it.

    Attributes:
        paddings: Above, below, left and right.
        bias: Its place among the biases, or None.
        bfloat16: Whether its factors are rounded.
    """

    strides: tuple[int, int]
    paddings: tuple[int, int, int, int]
    groups: int
    bias: int | None
    post_ops: tuple[str, ...]
    bfloat16: bool = False


class Filter(NamedTuple):
    """The layout of a filter: how many channels, taps and outputs it has, and how far these are apart."""

    channels: int
    taps: int
    outputs: int
    channel: int
    tap: int
    output: int

    @property
    def packed(self) -> int:
        """Numbers in its packed form, where the last vector of outputs is filled up."""
        return self.channels * self.taps * -(-self.outputs // _LANES) * _LANES


def filter_of(w: Array) -> Filter:
    """The layout of a row-major filter [outputs, channels, ...]."""
    outputs, channels, *window = w.shape
    taps = math.prod(window)
    return Filter(channels, taps, outputs, taps, 1, channels * taps)


class ConvLayer(NamedTuple):
    """A convolution.

    Attributes:
        filter: Layout of its weights; of one with a group for each channel, whose taps alone are multiplied, the
            channels are outputs.
        window: Its window.
        depthwise: Whether it has a group for each channel.
        biased: Whether it has a bias.
        halves: Whether it is computed by products of halves where pixels are many.
        halved: Whether it is.
        added_at: After how many functions the residual is added, or -1.
        follows: The functions behind it, as functions.h has them.
    """

    filter: Filter
    window: Window
    depthwise: bool
    biased: bool
    halves: bool
    halved: bool
    added_at: int
    follows: tuple[int, ...]

    def serves(self, pixels: int) -> bool:
        """Whether this is the layer for results of so many pixels, and no other one or a primitive."""
        filter = self.filter
        if self.halves and self.halved != (pixels >= _LEAST_PIXELS):
            return False
        numbers = filter.channels * filter.taps * filter.outputs
        return self.depthwise or not is_read_once(pixels, numbers)

    @property
    def settings(self) -> list[int]:
        """The struct link of chain.c."""
        count = len(self.follows)
        fields = [self.filter.outputs, self.biased, self.halved, self.added_at, count // 3, *self.follows]
        window = [number for pair in self.window for number in pair]
        return [*fields, *[0] * (3 * _FUNCTIONS - count), *window, self.depthwise]

    @property
    def packed(self) -> MemoryDesc:
        """Layout of its packed weights."""
        return MemoryDesc.strided((self.filter.packed * (7 if self.halved else 4) // 4,))


def conv_layer(
    filter: Filter,
    window: Window,
    biased: bool,
    post_ops: Sequence[str],
    pixels: int,
    depthwise: bool = False,
    halves: bool = True,
) -> ConvLayer | None:
    """The layer, if the step can compute it.

    Args:
        filter: Layout of the weights.
        window: Its window.
        biased: Whether it has a bias.
        post_ops: What follows.
        pixels: Of all results.
        depthwise: Whether it has a group for each channel.
        halves: Whether products of halves will do, whose sums are rounded a little more.
    """
    numbers = filter.channels * filter.taps * filter.outputs
    if not widest_serves():
        return None
    wide = not depthwise and filter.taps > 1 and filter.outputs > _OUTPUTS_OF_TILE
    if wide and numbers > _MOST_OF_WINDOW:
        return None
    halves = halves and window.is_pixel and not depthwise and _LEAST_WEIGHTS <= numbers <= _MOST_WEIGHTS
    halves = halves and filter.channels % (2 * _LANES) == filter.outputs % (2 * _LANES) == 0
    layer = _conv_layer(filter, window, depthwise, biased, halves, tuple(post_ops))
    if layer is not None and halves and pixels < _LEAST_PIXELS:
        layer = layer._replace(halved=False)
    return layer if layer is not None and layer.serves(pixels) else None


@lru_cache(maxsize=4096)
def _conv_layer(
    filter: Filter, window: Window, depthwise: bool, biased: bool, halves: bool, post_ops: tuple[str, ...]
) -> ConvLayer | None:
    """The layer for many pixels, if the step has what follows it; kept, since it is that of all sizes of images."""
    added_at = post_ops.index(RESIDUAL) if RESIDUAL in post_ops else -1
    others = [text for text in post_ops if text != RESIDUAL]
    if len(others) > _FUNCTIONS or len(post_ops) - len(others) > 1:
        return None
    try:
        follows = tuple(functions(others, _KINDS))
    except NotServedError:
        return None
    return ConvLayer(filter, window, depthwise, biased, halves, halves, added_at, follows)


class _Filter(Structure):
    """The struct of layers.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in (*Filter._fields, "one_block")),
        *((name, c_void_p) for name in ("from_", "to")),
    )


def _pack(arrays: Sequence[Array], filter: Filter, depthwise: bool, halved: bool) -> Array:
    """The weights of a filter in the order in which the step reads them."""
    library, parts = RUNNER.library, [arrays[0]]
    assert library is not None  # or nobody had a layer
    if halved:
        rows, columns = filter.channels // 2, filter.outputs // 2
        whole = arrays[0].reshape(filter.outputs, filter.channels).T
        (w11, w12), (w21, w22) = ((half[:, :columns], half[:, columns:]) for half in (whole[:rows], whole[rows:]))
        t1 = w12 - w11
        t2 = w22 - t1
        parts = [np.ascontiguousarray(a) for a in (w11, w21, t2, w22 - w12, w21 - t2, t1, w22)]
        filter = Filter(rows, 1, columns, columns, 1, 1)
    packed = aligned_empty(FLOAT.itemsize * filter.packed * len(parts), FLOAT)
    for i, part in enumerate(parts):
        form = _Filter(*filter, depthwise, part.ctypes.data, packed[i * filter.packed :].ctypes.data)
        library.oprack_filter_pack(addressof(form))
    return packed


_PACKED = FromConstants(_pack)


class LayerWeights(Weights):
    """The filters of a layer, packed once for as long as they live."""

    def __init__(self, layer: ConvLayer) -> None:
        form = layer.filter
        dims, strides = (form.outputs, form.channels, form.taps), (form.output, form.channel, form.tap)
        super().__init__(MemoryDesc.strided(dims, strides), layer.packed)
        self._given = External(self.source)
        self._form = layer.filter, layer.depthwise, layer.halved

    def of(self, array: np.ndarray) -> np.ndarray:
        """A constant filter's packed form. Raises OperandError when it is not what the layer says."""
        self._given.address(array)  # which is read as such
        packed: np.ndarray = _PACKED((array,), *self._form)
        return packed


class ConvolutionStep:
    """Layers in a row as a step of a chain, with operands of their own: images, weights, biases, scale and residual.

    Args:
        chain: Where to.
        layers: One after the other.
        source: [N, C, H, W] of the images, in any layout.
        added: Of what is added to the last layer's results, or None.
        scaled: Whether there is a scale [N, C] for the images' channels, which goes with a first layer of single
            pixels.

    Attributes:
        shape: [N, C, H, W] of the results, channels last.
        planar: Whether it reads images row-major: pictures, whose few channels are moved while their rows are copied.
        weights: How operands are packed, by their places.

    Raises:
        NotServedError: There are no results, or the residual and what adds it do not fit.
    """

    def __init__(
        self,
        chain: PrimitiveChain,
        layers: Sequence[ConvLayer],
        source: MemoryDesc,
        added: MemoryDesc | None = None,
        scaled: bool = False,
    ) -> None:
        n, channels, *size = images = source.shape
        self._places = THREAD.limit or LIBRARY.num_threads()
        first = layers[0]
        self.planar = source == MemoryDesc.strided(images) and channels <= _FEW_CHANNELS
        self.planar &= not (first.depthwise or first.window.is_pixel)  # which read images without a copy
        self._settings = [channels, scaled, self.planar, self._places, len(layers)]
        for layer in layers:
            self._settings += layer.settings
        self._chain, self._layers = chain, layers
        if (layers[-1].added_at >= 0) != (added is not None):
            raise NotServedError("a residual that no post-op adds, or the other way round")
        shape = self._shape(images)
        if shape is None or (added is not None and added.shape != shape):
            raise NotServedError("an empty result, images of other layers or a residual of another shape")
        self.shape = shape
        self.weights: dict[int, Weights] = {1 + i: LayerWeights(layer) for i, layer in enumerate(layers)}
        given: Memory = chain.input(source)
        packed = [chain.input(layer.packed) for layer in layers]
        more: list[Memory] = [
            chain.input(MemoryDesc.strided((layer.filter.outputs,))) for layer in layers if layer.biased
        ]
        if scaled:
            more.insert(0, chain.input(MemoryDesc.strided((n, channels))))
        target = channels_last_desc(self.shape)
        if added is not None:
            more.append(chain.in_layout(chain.input(added), target))
        if not self.planar:
            given = chain.in_layout(given, channels_last_desc(images))
        operands = enumerate([*packed, *more], _c.WEIGHTS)
        chain.add(self._sized(n, *size), {_c.SRC: given, **dict(operands), _c.DST: chain.output(target)})

    def _sized(self, *images: int) -> NativeStep:
        """The step for so many images of so many rows and columns."""
        assert RUNNER.library is not None
        step, products = NativeStep("oprack_convolution", (*images, *self._settings)), c_int64()
        step.room = FLOAT.itemsize * RUNNER.library.oprack_convolution_room(step.settings, addressof(products))
        step.products = products.value
        return step

    def _shape(self, images: tuple[int, ...]) -> tuple[int, ...] | None:
        """The shape of the results for images; None where there are none, or other layers suit these images."""
        n, channels, *size = images
        if channels != self._settings[0] or 0 in images:
            return None
        for layer in self._layers:
            size = layer.window.results(size)
            if min(size) < 1 or not layer.serves(n * math.prod(size)):
                return None
        return n, self._layers[-1].filter.outputs, *size

    def resized(self, images: tuple[int, ...]) -> tuple[PrimitiveChain, tuple[int, ...]] | None:
        """(the chain, the shape of its results) for images of another size; None where they want other layers."""
        shape = self._shape(images) if self._places == (THREAD.limit or LIBRARY.num_threads()) else None
        if shape is None:
            return None
        moved = FLOAT.itemsize * (math.prod(images) + math.prod(shape))
        chain = self._chain.resized(self._sized(images[0], *images[2:]), moved)
        return None if chain is None else (chain, shape)


class LayersPrimitive(ShapedPrimitive):
    """Layers in a row, for images of one shape.

    Args:
        layers: One after the other.
        x: The images.
        residual: What is added to the last layer's results, or None.
        scaled: Whether there is a scale of channels, as ConvolutionStep has it.
    """

    def __init__(
        self, layers: Sequence[ConvLayer], x: Array, residual: Array | None = None, scaled: bool = False
    ) -> None:
        self.chain, self._scaled = PrimitiveChain(), scaled
        added = None if residual is None else image_desc(residual)
        self._step = ConvolutionStep(self.chain, layers, image_desc(x), added, scaled)
        self.shape, self.weights = self._step.shape, self._step.weights

    def resized(self, x: Array, *others: Array) -> ShapedPrimitive | None:
        if x.ndim != 4 or not all(map(is_channels_last, others)):
            return None
        if not (x.flags.c_contiguous if self._step.planar else is_channels_last(x)):
            return None
        scale, residual = others[: self._scaled], others[self._scaled :]
        found = self._step.resized(x.shape)
        if found is None or any(s.shape[:2] != x.shape[:2] for s in scale):
            return None
        return None if any(a.shape != found[1] for a in residual) else SizedPrimitive(*found)


def result_shape(shape: tuple[int, ...], w: Array, layer: Layer) -> tuple[int, ...]:
    """The shape of a convolution's result; raises NotServedError where there is none."""
    top, bottom, left, right = layer.paddings
    windows = zip(shape[2:], w.shape[2:], ((top, bottom), (left, right)), layer.strides, strict=True)
    size = [conv_out(*window, 1) for window in windows]
    if min(layer.paddings) < 0 or 0 in shape or 0 in w.shape or min(size) < 1:
        raise NotServedError("negative padding, or an empty tensor")
    return (shape[0], w.shape[0], *size)


def layers_primitive(
    layers: Sequence[Layer], x: Array, filters: Sequence[Array], residual: Array | None, scaled: bool = False
) -> LayersPrimitive | None:
    """All convolutions as one step in C, for which nothing is compiled; None where one is none, or a slower one.

    Args:
        layers: One after the other.
        x: The images.
        filters: Row-major, of each.
        residual: What "residual" among the last one's post-ops adds, or None.
        scaled: Whether there is a scale of the images' channels.

    Raises:
        NotServedError: There are no results, or the residual has another shape than these.
    """
    narrow = any(a.dtype != FLOAT for a in ([x] if residual is None else [x, residual]))
    narrow = narrow or any(layer.bfloat16 for layer in layers)
    if narrow or len(layers) > MOST or any(RESIDUAL in layer.post_ops for layer in layers[:-1]):
        return None
    found, shape = [], x.shape
    for w, layer in zip(filters, layers, strict=True):
        channels, shape = shape[1], result_shape(shape, w, layer)
        depthwise = layer.groups > 1 and layer.groups == w.shape[0] == channels
        # the step trusts that a filter has these: it would be led out of it
        if w.shape[1] != (1 if depthwise else channels) or not (depthwise or layer.groups == 1):
            return None
        window = Window(w.shape[2:], layer.strides, layer.paddings[::2], layer.paddings[1::2])
        given = filter_of(w), window, layer.bias is not None, layer.post_ops
        native = conv_layer(*given, shape[0] * math.prod(shape[2:]), depthwise)
        if native is None:
            return None
        found.append(native)
    return LayersPrimitive(found, x, residual, scaled)
