"""Which taps of a filter see pixels: for small images the outer ones may see nothing but padding."""

from __future__ import annotations

from collections.abc import Sequence

from oprack_onednn.dnnl.native import MemoryDesc, contiguous_strides
from oprack_onednn.dnnl.operands import FLOAT

FilterPart = tuple[MemoryDesc, int]
"""The layout of some taps of all filters, within them, and the offset of the first number in bytes."""


def seen(
    sizes: Sequence[int],
    outs: Sequence[int],
    ksize: Sequence[int],
    pads: Sequence[tuple[int, int]],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]] | None:
    """For each dim (number of the first tap that sees pixels, number behind the last one); None where all taps do."""
    found = [_along(*dim) for dim in zip(sizes, outs, ksize, pads, strides, dilations, strict=True)]
    return None if all(b - a == k for (a, b), k in zip(found, ksize, strict=True)) else found


def _along(size: int, out: int, k: int, pads: tuple[int, int], stride: int, dilation: int) -> tuple[int, int]:
    front = pads[0]
    # the window's last place decides for the first taps, its first place for the last ones; no padding turns negative
    first = max(0, min(-(-(front - (out - 1) * stride) // dilation), front // dilation))
    behind = min(k, (size - 1 + front) // dilation + 1)
    return (first, behind) if first < behind else (0, k)


def part(filter_shape: Sequence[int], taps: Sequence[tuple[int, int]]) -> FilterPart:
    """These taps within a row-major filter, whose last dims are the window."""
    before, strides = len(filter_shape) - len(taps), contiguous_strides(filter_shape)
    shape = (*filter_shape[:before], *(behind - first for first, behind in taps))
    offset = sum(first * s for (first, _), s in zip(taps, strides[before:], strict=True))
    return MemoryDesc.strided(shape, strides), FLOAT.itemsize * offset
