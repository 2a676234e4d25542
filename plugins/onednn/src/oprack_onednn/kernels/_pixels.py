"""Layers of convolutions of one pixel as a step in C, which any number of pixels shares (c/pixels.c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from oprack_nn.ops.post_ops import RESIDUAL

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import aligned_empty
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import FromConstants, Weights
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._steps import algorithm

if TYPE_CHECKING:
    from oprack.kernel import Array

    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.objects import Memory

MOST = 2
"""Layers of a step."""
_LANES, _VECTORS = 16, 3  # of a register, and of a block of columns
# Pixels that are computed at a time, and what their number is a multiple of, so that threads share them evenly.
_BLOCK, _BLOCKS = 144, 4
# Products of halves save less than they cost with fewer weights or pixels; with more weights than this these are read
# from memory, where they are 7 / 4 as many.
_LEAST_WEIGHTS, _MOST_WEIGHTS, _LEAST_PIXELS = 96 * 192, 1 << 19, 96
_FOLLOWS = {("relu", 0.0, 0.0): 1, ("gelu_erf", 0.0, 0.0): 2}
_GELU = 2


class PixelLayer(NamedTuple):
    """A convolution of one pixel.

    Attributes:
        inputs, outputs: Channels.
        follows: The number of the function behind it, as in pixels.c.
        biased: Whether it has a bias.
        added: Whether a residual is added before the function.
        halved: Whether it is computed by products of halves.
    """

    inputs: int
    outputs: int
    follows: int
    biased: bool
    added: bool
    halved: bool

    @property
    def pays(self) -> bool:
        """Whether the step is faster than a primitive: by fewer products, or since its function takes half the time."""
        return self.halved or self.follows == _GELU

    @property
    def packed(self) -> MemoryDesc:
        """Layout of its packed weights."""
        return MemoryDesc.strided((self.inputs * self.outputs * (7 if self.halved else 4) // 4,))


def pixel_layer(w: Array, biased: bool, post_ops: tuple[str, ...], pixels: int) -> PixelLayer | None:
    """The layer with the filter `w` for so many pixels, if the step can compute it; its window has to be one pixel."""
    library, (outputs, inputs, *window) = RUNNER.library, w.shape
    if library is None or window != [1, 1] or outputs % _LANES or not library.oprack_pixels_serves():
        return None
    added = post_ops[:1] == (RESIDUAL,)
    others = post_ops[added:]
    if len(others) > 1 or RESIDUAL in others:
        return None
    follows = _FOLLOWS.get(algorithm(others[0])) if others else 0
    if follows is None:
        return None
    halves = inputs % (2 * _LANES) == outputs % (2 * _LANES) == 0 and pixels >= _LEAST_PIXELS
    halved = halves and _LEAST_WEIGHTS <= inputs * outputs <= _MOST_WEIGHTS
    return PixelLayer(inputs, outputs, follows, biased, added, halved)


def _blocks(w: Array) -> list[Array]:
    """A matrix [inputs, outputs] by blocks of columns, row after row, as in pixels.c."""
    found, first, all_ = [], 0, w.shape[1] // _LANES
    while first < all_:
        vectors = 2 if all_ - first == _VECTORS + 1 else min(all_ - first, _VECTORS)
        found.append(w[:, first * _LANES : (first + vectors) * _LANES].reshape(-1))
        first += vectors
    return found


def _pack(arrays: Sequence[Array], halved: bool) -> Array:
    """The weights of a filter [outputs, inputs, 1, 1] in the order in which the step reads them."""
    w = arrays[0].reshape(arrays[0].shape[:2]).T
    parts = [w]
    if halved:
        k, n = w.shape[0] // 2, w.shape[1] // 2
        (w11, w12), (w21, w22) = ((half[:, :n], half[:, n:]) for half in (w[:k], w[k:]))
        t1 = w12 - w11
        t2 = w22 - t1
        parts = [w11, w21, t2, w22 - w12, w21 - t2, t1, w22]
    flat = np.concatenate([block for part in parts for block in _blocks(part)])
    packed = aligned_empty(flat.nbytes, FLOAT)
    packed[:] = flat
    return packed


_PACKED = FromConstants(_pack)


class PixelWeights(Weights):
    """The filters of a layer, packed once for as long as they live."""

    def __init__(self, layer: PixelLayer) -> None:
        super().__init__(layer.packed, layer.packed)
        self._halved = layer.halved

    def of(self, array: np.ndarray) -> np.ndarray:
        """A constant filter's packed form."""
        packed: np.ndarray = _PACKED((array,), self._halved)
        return packed


def add_pixels(
    chain: PrimitiveChain,
    layers: Sequence[PixelLayer],
    pixels: int,
    source: Memory,
    weights: Sequence[Memory],
    biases: Sequence[Memory],
    added: Memory | None,
    target: Memory,
) -> None:
    """Append the step.

    Args:
        chain: Where to.
        layers: One or two.
        pixels: How many.
        source: The pixels [pixels, inputs].
        weights: Packed, of each layer.
        biases: Of the layers that have one.
        added: What the last layer's results are added to, or None.
        target: Where these go.
    """
    blocks = -(-pixels // _BLOCK)
    blocks = -(-blocks // _BLOCKS) * _BLOCKS if blocks > 1 else 1
    block, places = -(-pixels // blocks), min(blocks, THREAD.limit or LIBRARY.num_threads())
    between = block * layers[0].outputs if len(layers) > 1 else 0
    halves = max((block + 1) * (la.inputs + la.outputs // 2) if la.halved else 0 for la in layers)
    room = -(-(between + halves) // _LANES) * _LANES
    fields = [n for la in layers for n in (la.inputs, la.outputs, la.follows, la.biased, la.halved)]
    settings = pixels, block, places, room, len(layers), added is not None, *fields
    scratch = chain.temporary(MemoryDesc.strided((max(places * room, 1),)))
    more = [*weights[1:], *biases, *([] if added is None else [added]), scratch]
    memory = {_c.SRC: source, _c.WEIGHTS: weights[0], **dict(enumerate(more, _c.WEIGHTS + 1)), _c.DST: target}
    chain.add(NativeStep("oprack_pixels", settings), memory)
