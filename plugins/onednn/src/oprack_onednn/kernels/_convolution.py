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
from oprack_onednn.chain.memory import aligned_empty
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

if TYPE_CHECKING:
    from oprack.kernel import Array

    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.objects import Memory

MOST = 2
"""Layers of a step."""
_LANES = 16  # of a register
_FUNCTIONS = 2  # that follow a layer at most
_KINDS = KINDS | {"gelu_erf": -1}  # which layers.h has besides
# Outputs up to which oneDNN's code, which computes more pixels at a time, takes less time.
_FEW_OUTPUTS = 16
# Weights up to which an image of fewer pixels is worth to read them.
_MOST_FOR_FEW_PIXELS = 1 << 18
# Weights of a window from which on a primitive takes a tenth less time, or more.
_MOST_OF_WINDOW = 1 << 16
# Products of halves save less than they cost with fewer weights or pixels; with more weights than this these are read
# from memory, where they are 7 / 4 as many.
_LEAST_WEIGHTS, _MOST_WEIGHTS, _LEAST_PIXELS = 96 * 192, 1 << 19, 96


class Window(NamedTuple):
    """How a convolution goes through images: (along rows, along columns) each.

    Attributes:
        before: Zeros above and to the left.
    """

    taps: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    before: tuple[int, int] = (0, 0)

    @property
    def is_pixel(self) -> bool:
        """Whether results are products of single pixels, one for each."""
        return self.taps == self.strides == (1, 1) and not any(self.before)


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
        halved: Whether it is computed by products of halves.
        added_at: After how many functions the residual is added, or -1.
        follows: The functions behind it, as functions.h has them.
    """

    filter: Filter
    window: Window
    depthwise: bool
    biased: bool
    halved: bool
    added_at: int
    follows: tuple[int, ...]

    @property
    def is_pixel(self) -> bool:
        """Whether its results are products of single pixels, one for each."""
        return self.window.is_pixel and not self.depthwise

    def follows_in_step(self, pixels: int) -> bool:
        """Whether it may be the second layer of a step for images of so many pixels; each image reads all weights."""
        return self.is_pixel and (pixels >= _LEAST_PIXELS or self.filter.packed <= _MOST_FOR_FEW_PIXELS)

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
    if not depthwise and (is_read_once(pixels, numbers) or filter.outputs <= _FEW_OUTPUTS):
        return None
    if not depthwise and filter.taps > 1 and numbers > _MOST_OF_WINDOW:
        return None
    halves = halves and window.is_pixel and not depthwise
    halved = halves and pixels >= _LEAST_PIXELS and _LEAST_WEIGHTS <= numbers <= _MOST_WEIGHTS
    halved = halved and filter.channels % (2 * _LANES) == filter.outputs % (2 * _LANES) == 0
    return _conv_layer(filter, window, depthwise, biased, halved, tuple(post_ops))


@lru_cache(maxsize=4096)
def _conv_layer(
    filter: Filter, window: Window, depthwise: bool, biased: bool, halved: bool, post_ops: tuple[str, ...]
) -> ConvLayer | None:
    """The layer, if the step has what follows it; kept, since it is the same for other sizes of images."""
    added_at = post_ops.index(RESIDUAL) if RESIDUAL in post_ops else -1
    others = [text for text in post_ops if text != RESIDUAL]
    if len(others) > _FUNCTIONS or len(post_ops) - len(others) > 1:
        return None
    try:
        follows = tuple(functions(others, _KINDS))
    except NotServedError:
        return None
    return ConvLayer(filter, window, depthwise, biased, halved, added_at, follows)


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
        layers: One or two, of which the second is one of single pixels.
        images: How many, and their rows and columns.
        results: Rows and columns of a result.
        scaled: Whether there is a scale for the channels of each image, which goes with a first layer of single pixels.
    """

    def __init__(
        self,
        chain: PrimitiveChain,
        layers: Sequence[ConvLayer],
        images: tuple[int, ...],
        results: tuple[int, ...],
        scaled: bool = False,
    ) -> None:
        library, (first, *_) = RUNNER.library, layers
        assert library is not None
        if first.is_pixel:  # pixels are rows of one image, or of each
            n, pixels = (images[0], math.prod(images[1:])) if scaled else (1, math.prod(images))
            images, results = (n, pixels, 1), (pixels, 1)
        fields: list[int] = []
        for layer in layers:
            count = len(layer.follows)
            fields += layer.filter.outputs, layer.biased, layer.halved, layer.added_at, count // 3, *layer.follows
            fields += [0] * (3 * _FUNCTIONS - count)
        window = [number for pair in first.window for number in pair]
        places = THREAD.limit or LIBRARY.num_threads()
        channels = first.filter.outputs if first.depthwise else first.filter.channels
        settings = [*images, channels, *results, *window, first.depthwise, scaled, places, len(layers), *fields]
        self._chain, self._step = chain, NativeStep("oprack_convolution", settings)
        room = library.oprack_convolution_room(self._step.settings)
        self._scratch = chain.temporary(MemoryDesc.strided((room,)))

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
        more = [*weights[1:], *optional[0], *biases, *optional[1], self._scratch]
        memory = {_c.SRC: source, _c.WEIGHTS: weights[0], **dict(enumerate(more, _c.WEIGHTS + 1)), _c.DST: target}
        self._chain.add(self._step, memory)


def add_pixel_layer(
    chain: PrimitiveChain,
    layer: ConvLayer,
    images: tuple[int, ...],
    source: MemoryDesc,
    target: MemoryDesc,
    residual: bool,
    scaled: bool = False,
) -> dict[int, Weights]:
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
        How operands are packed, by their places.
    """
    pixels, weights = chain.input(source), chain.input(layer.packed)
    biases = [chain.input(MemoryDesc.strided((layer.filter.outputs,)))] if layer.biased else []
    scale = chain.input(MemoryDesc.strided((images[0], layer.filter.channels))) if scaled else None
    added = chain.input(target) if residual else None
    step = ConvolutionStep(chain, [layer], images, images[1:], scaled)
    step.add(pixels, [weights], biases, added, chain.output(target), scale)
    return {1: LayerWeights(layer)}
