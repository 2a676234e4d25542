"""concat of images: one copy per input into a slice of the result, in channels-last memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, KernelContext

from oprack_onednn.declare import Limits, onednn_kernel
from oprack_onednn.memory import empty_image, image_desc, is_channels_last, last_strides
from oprack_onednn.native import MemoryDesc
from oprack_onednn.operands import Region
from oprack_onednn.primitive_chain import THREAD, PrimitiveChain


class ConcatPrimitive:
    """Inputs of some shapes and strides along one axis; the result is in channels-last memory."""

    def __init__(self, inputs: Sequence[Array], axis: int) -> None:
        first = inputs[0]
        total = sum(x.shape[axis] for x in inputs)
        self.shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
        strides = last_strides(self.shape)
        self.chain, self.offsets = PrimitiveChain(), []
        start = 0
        for x in inputs:
            target = self.chain.output(MemoryDesc.strided(x.shape, strides))
            source = self.chain.input(image_desc(x))
            self.chain.reorder(source, target)
            self.offsets.append(4 * start * strides[axis])
            start += x.shape[axis]


def _serves(images: Sequence[np.ndarray], axis: int) -> bool:
    """Whether these are images that fit together, enough of them channels-last for the copies to gain something."""
    if len(images) == 1 or not -4 <= axis < 4 or any(x.ndim != 4 or not x.size for x in images):
        return False
    if sum(x.size for x in images) < Limits.moved:
        return False
    if not any(is_channels_last(x) and not x.flags.c_contiguous for x in images):
        return False
    axis %= 4
    return len({x.shape[:axis] + x.shape[axis + 1 :] for x in images}) == 1


@onednn_kernel("concat")
def concat(X: list[Array], AxisTensor: Array | None = None, *, axis: int, ctx: KernelContext) -> Array:
    # on axis 0 sequences are joined as well
    if AxisTensor is not None or (axis in (0, -4) and ctx.lod("X")) or not _serves(X, axis):
        return NotImplemented
    axis %= 4
    key = ("concat", axis, *((x.shape, x.strides) for x in X))
    found = THREAD.primitive(key, ConcatPrimitive, X, axis)
    if found is None:
        return NotImplemented
    y = empty_image(found.shape)
    whole = Region(y)
    # Pairs of (where in the result, input), in the order in which the chain was built.
    found.chain.run(*[a for x, offset in zip(X, found.offsets, strict=True) for a in ((whole, offset), x)])
    return y
