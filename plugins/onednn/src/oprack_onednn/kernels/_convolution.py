"""Convolutions in a row, of one group or of a channel each, as a step in C for any size (c/convolution.c)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import Structure, addressof, c_int64, c_void_p
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from oprack_nn.ops.post_ops import RESIDUAL

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import aligned_empty, is_channels_last
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import FromConstants, Weights
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._implementation import is_read_once
from oprack_onednn.kernels._steps import KINDS, functions
from oprack_onednn.stretch.callsite import SizedPrimitive

if TYPE_CHECKING:
    from oprack.kernel import Array

    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.objects import Memory

MOST = 16
"""Layers of a step, as chain.c has it."""
_LANES = 16  # of a register
_FUNCTIONS = 2  # that follow a layer at most
_KINDS = KINDS | {"gelu_erf": -1}  # which layers.h has besides
# Outputs up to which oneDNN's code, which computes more pixels at a time, takes less time.
_FEW_OUTPUTS = 16
# Weights of a window from which on a primitive takes a tenth less time, or more.
_MOST_OF_WINDOW = 1 << 16
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

    def between(self, above: int, below: int) -> Window:
        """The window on rows of an image with so many zeros around them."""
        return self._replace(before=(above, self.before[1]), after=(below, self.after[1]))

    @property
    def is_pixel(self) -> bool:
        """Whether results are products of single pixels, one for each."""
        return self.taps == self.strides == (1, 1) and not any(self.before + self.after)


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
        return self.depthwise or not (is_read_once(pixels, numbers) or filter.outputs <= _FEW_OUTPUTS)

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
    library, numbers = RUNNER.library, filter.channels * filter.taps * filter.outputs
    if library is None or not library.oprack_convolution_serves():
        return None
    if not depthwise and filter.taps > 1 and numbers > _MOST_OF_WINDOW:
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
        super().__init__(layer.packed, layer.packed)
        self._form = layer.filter, layer.depthwise, layer.halved

    def of(self, array: np.ndarray) -> np.ndarray:
        """A constant filter's packed form."""
        packed: np.ndarray = _PACKED((array,), *self._form)
        return packed


class ConvolutionStep:
    """The step, which parts of one size share.

    Args:
        chain: Where to.
        layers: One after the other.
        images: [N, C, H, W] of what the first one reads.
        scaled: Whether there is a scale for the channels of each image, which goes with a first layer of single pixels.
    """

    def __init__(
        self, chain: PrimitiveChain, layers: Sequence[ConvLayer], images: tuple[int, ...], scaled: bool = False
    ) -> None:
        n, channels, height, width = images
        self._places = THREAD.limit or LIBRARY.num_threads()
        self._settings = [channels, scaled, self._places, len(layers)]
        for layer in layers:
            self._settings += layer.settings
        self._chain, self._layers = chain, layers
        self._step = self._sized(n, height, width)

    def _sized(self, *images: int) -> NativeStep:
        """The step for so many images of so many rows and columns."""
        assert RUNNER.library is not None
        step, products = NativeStep("oprack_convolution", (*images, *self._settings)), c_int64()
        step.room = FLOAT.itemsize * RUNNER.library.oprack_convolution_room(step.settings, addressof(products))
        step.products = products.value
        return step

    def resized(self, images: tuple[int, ...]) -> tuple[PrimitiveChain, tuple[int, ...]] | None:
        """(the chain, the shape of its results) for images of another size; None where they want other layers."""
        n, channels, *size = images
        if channels != self._settings[0] or self._places != (THREAD.limit or LIBRARY.num_threads()) or 0 in images:
            return None
        for layer in self._layers:
            size = layer.window.results(size)
            if min(size) < 1 or not layer.serves(n * math.prod(size)):
                return None
        shape = n, self._layers[-1].filter.outputs, *size
        moved = FLOAT.itemsize * (math.prod(images) + math.prod(shape))
        chain = self._chain.resized(self._sized(n, *images[2:]), moved)
        return None if chain is None else (chain, shape)

    def add(
        self,
        source: Memory,
        weights: Sequence[Memory],
        biases: Sequence[Memory],
        added: Memory | None,
        target: Memory,
        scale: Memory | None = None,
    ) -> None:
        """Append the step.

        Args:
            source: The images, channels last.
            weights: Packed, of each layer.
            biases: Of the layers that have one.
            added: What is added to the last layer's results, or None.
            target: Where these go.
            scale: Of the images' channels, where there is one.
        """
        optional = [[] if memory is None else [memory] for memory in (scale, added)]
        more = [*weights[1:], *optional[0], *biases, *optional[1]]
        memory = {_c.SRC: source, _c.WEIGHTS: weights[0], **dict(enumerate(more, _c.WEIGHTS + 1)), _c.DST: target}
        self._chain.add(self._step, memory)


def sized_primitive(step: ConvolutionStep | None, x: Array, residual: Sequence[Array]) -> SizedPrimitive | None:
    """The primitive for images, and what is added to its results, if anything; None where it has to be built anew."""
    if step is None or x.ndim != 4 or not all(map(is_channels_last, (x, *residual))):
        return None
    found = step.resized(x.shape)
    return None if found is None or any(a.shape != found[1] for a in residual) else SizedPrimitive(*found)


def add_pixel_layer(
    chain: PrimitiveChain,
    layer: ConvLayer,
    images: tuple[int, ...],
    source: MemoryDesc,
    target: MemoryDesc,
    residual: bool,
    scaled: bool = False,
) -> tuple[ConvolutionStep, dict[int, Weights]]:
    """Append a layer of single pixels, whose operands are the chain's own: pixels, weights, bias, scale and residual.

    Args:
        chain: Where to.
        layer: The layer.
        images: How many, and their rows and columns.
        source: Of the images, channels last.
        target: Of the results, and of what is added to them.
        residual: Whether something is.
        scaled: Whether there is a scale for the channels of each image.

    Returns:
        The step, and how operands are packed, by their places.
    """
    pixels, weights = chain.input(source), chain.input(layer.packed)
    biases = [chain.input(MemoryDesc.strided((layer.filter.outputs,)))] if layer.biased else []
    scale = chain.input(MemoryDesc.strided((images[0], layer.filter.channels))) if scaled else None
    added = chain.input(target) if residual else None
    step = ConvolutionStep(chain, [layer], (images[0], layer.filter.channels, *images[1:]), scaled)
    step.add(pixels, [weights], biases, added, chain.output(target), scale)
    return step, {1: LayerWeights(layer)}
