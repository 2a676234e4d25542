"""concat: one copy per input into a slice of the result, in the memory order that the inputs share."""

from __future__ import annotations

from oprack_onednn.memory import (
    BUFFERS,
    address,
    empty_image,
    image_desc,
    is_channels_last,
    last_strides,
)
from oprack_onednn.native import MemoryDesc, contiguous_strides
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


class ConcatPlan:
    """Inputs of some shapes and strides along one axis. channels_last: layout of the result."""

    def __init__(self, inputs, axis, channels_last):
        first = inputs[0]
        total = sum(x.shape[axis] for x in inputs)
        self.shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
        strides = last_strides(self.shape) if channels_last else contiguous_strides(self.shape)
        self.plan, self.offsets = Plan(), []
        start = 0
        for x in inputs:
            target = self.plan.output(MemoryDesc.strided(x.shape, strides))
            source = self.plan.input(image_desc(x))
            self.plan.reorder(source, target)
            self.offsets.append(4 * start * strides[axis])
            start += x.shape[axis]


@served("concat")
def concat(X, AxisTensor=None, *, axis, ctx):
    first = X[0]
    if AxisTensor is not None or first.ndim != 4 or not all(x.size for x in X) or len(X) == 1:
        return NotImplemented
    channels_last = is_channels_last(first)
    if sum(x.size for x in X) < Limits.moved or (not channels_last and first.flags.c_contiguous):
        return NotImplemented
    axis %= 4
    key = ("concat", axis, *((x.shape, x.strides) for x in X))
    found = THREAD.plan(key, ConcatPlan, X, axis, channels_last)
    if found is None:
        return NotImplemented
    y = empty_image(found.shape) if channels_last else BUFFERS.take(found.shape)
    start = address(y)
    addresses = [a for x, offset in zip(X, found.offsets, strict=True) for a in (start + offset, address(x))]
    found.plan.run(THREAD, *addresses)
    return y
