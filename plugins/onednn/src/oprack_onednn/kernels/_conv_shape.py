"""What a convolution's shapes and attributes come to, for every kernel that convolves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from oprack.kernel import Array
from oprack.op.families import conv_out, resolve_pads

from oprack_onednn.chain.memory import channels_last_desc
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import MemoryDesc, dims
from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.kernels._implementation import convolution

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Attributes, PrimitiveDesc


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


def grouped(shape: tuple[int, ...], groups: int) -> tuple[int, ...]:
    """Filter dims as oneDNN wants them: [groups, K / groups, C / groups, kh, kw] when there is more than one group."""
    k, *rest = shape
    return (groups, k // groups, *rest) if groups > 1 else tuple(shape)


# Pixels in a row from which on brgemm's products are as fast as they get: weights are read once for some of a row, so
# rows of 48 pixels took 5 % longer, those of 3 pixels 25 %.
_PIXELS = 128


def _rows_together(rows: int, width: int) -> int:
    """How many rows to see as one, of which there are then a whole number: as few as come to _PIXELS."""
    least = min(rows, -(-_PIXELS // width))
    return next(g for g in (*range(least, 4 * least), *range(least - 1, 0, -1)) if rows % g == 0)


class ConvShape:
    """What a convolution's shapes and attributes come to: shape of the result, window and filter as oneDNN wants them.

    Attributes:
        part: With `trim`, the part of the filter that sees pixels, where that is not all of it; filter_shape and window
            are those of this part then.

    Raises:
        NotServedError: For what it has no answer to.
    """

    def __init__(
        self,
        x_shape: tuple[int, ...],
        w: Array,
        strides: tuple[int, ...],
        paddings: tuple[int, ...],
        dilations: tuple[int, ...],
        groups: int,
        padding: str,
        trim: bool = False,
    ) -> None:
        n, _, *spatial = x_shape
        k, _, *ksize = w.shape
        # Paddle ignores dilations then.
        if padding == "SAME":
            dilations = (1,) * len(spatial)
        pads = resolve_pads(padding, paddings, spatial, ksize, strides)
        if min(p for pair in pads for p in pair) < 0 or 0 in x_shape or 0 in w.shape or not w.flags.c_contiguous:
            raise NotServedError("negative padding, an empty tensor or a filter that is a view")
        out = [conv_out(*s) for s in zip(spatial, ksize, pads, strides, dilations, strict=True)]
        if min(out) < 1:
            raise NotServedError("an empty result")
        self.filter_shape = grouped(w.shape, groups)
        self.filter_desc = MemoryDesc.strided(self.filter_shape)
        self.part: FilterPart | None = None
        taps = seen(spatial, out, ksize, pads, strides, dilations) if trim else None
        if taps is not None:
            self.part = part(self.filter_shape, taps)
            self.filter_shape, ksize = self.part[0].shape, [behind - first for first, behind in taps]
            pads = [(a - first * d, b) for (a, b), (first, _), d in zip(pads, taps, dilations, strict=True)]
        # oneDNN wants the size of the result to follow from the paddings exactly
        behind = [
            (o - 1) * t + d * (q - 1) + 1 - s - a
            for s, (a, _), o, d, q, t in zip(spatial, pads, out, dilations, ksize, strides, strict=True)
        ]
        self.shape = (n, k, *out)
        self.window = (dims(strides), dims(d - 1 for d in dilations), dims(a for a, _ in pads), dims(behind))
        self.depthwise = groups == x_shape[1]
        self._by_pixel = groups == 1 and len(out) == 2 and {*ksize, *strides} == {1} and not any(map(any, pads))

    def seen(self, images: MemoryDesc) -> MemoryDesc:
        """Images in channels-last memory as the primitive sees them: by a window of one pixel, a few rows as an image.

        The numbers are the same, and oneDNN has fewer ways to divide the work, of which it looks at all: a descriptor
        of a large image then takes a third of the time.
        """
        if not self._by_pixel:
            return images
        n, c, h, w = images.shape
        together = _rows_together(n * h, w)
        rows = channels_last_desc((n * h // together, c, 1, together * w))
        return rows if images.itemsize == 4 else rows.bfloat16

    def forward(
        self,
        source: MemoryDesc,
        result: MemoryDesc,
        row: MemoryDesc | None,
        attributes: Attributes,
        filter_desc: MemoryDesc | None = None,
    ) -> PrimitiveDesc:
        """The primitive descriptor. row: layout of the bias, or None; filter_desc: that of the filter, if it is set."""
        kind = (LIBRARY.engine, _c.FORWARD_INFERENCE, _c.CONVOLUTION_DIRECT)
        dtype = _c.F32 if source.itemsize == 4 else _c.BF16
        filter_desc = filter_desc or MemoryDesc.any(self.filter_shape, dtype)
        arguments = (*kind, source, filter_desc, row, result, *self.window, attributes)
        return convolution(*arguments, outputs=self.shape[1], depthwise=self.depthwise)
