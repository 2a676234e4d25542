"""Chains whose result is a row-major array, and arrays seen as rows that may be apart in memory."""

from __future__ import annotations

from oprack.kernel import Array

from oprack_onednn.chain.memory import Outlet
from oprack_onednn.dnnl.native import contiguous_strides
from oprack_onednn.stretch.callsite import ShapedPrimitive


class RowMajorPrimitive(ShapedPrimitive):
    """A chain whose result is a row-major array of `shape`."""

    def outlet(self) -> Outlet:
        strides = tuple(self.dtype.itemsize * s for s in contiguous_strides(self.shape))
        return Outlet(self.shape, strides, self.dtype)


def rows_of(array: Array, count: int = -1) -> tuple[int, ...] | None:
    """(m, k, elements from one row to the next) of an array whose first `count` dims are rows; None for other strides.

    count: default: all but the last.
    """
    lead, last = array.shape[:count], array.shape[count:]
    width = 1
    for n, stride in zip(reversed(last), reversed(array.strides[count:]), strict=True):
        if n != 1 and stride != array.itemsize * width:
            return None
        width *= n
    m = step = 1
    for n, stride in zip(reversed(lead), reversed(array.strides[:count]), strict=True):
        if n == 1:
            continue
        if m == 1:
            step = stride
        elif stride != step * m:
            return None
        m *= n
    if m == 1:
        return m, width, width
    # Rows that overlap, as those of a broadcast array do, are none that a primitive could read.
    apart, rest = divmod(step, array.itemsize)
    return None if rest or apart < width else (m, width, apart)
