"""A 3x3 or 1x1 convolution over images whose pixels were repeated f times along H and W, computed before that.

Of the f results that one pixel becomes along a dim, the first sees its neighbour before with one of three taps and
itself with two, the last sees itself with two and its neighbour behind with one, and those between see nothing but
itself. So along a dim there are two kernels: of two taps between neighbours j - 1 and j, which give the last result of
j - 1 and the first of j side by side (the image is padded by one pixel on both sides), and of one tap. With a window of
1x1 all results are the same.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from oprack.records import dataclass

from oprack_onednn.chain.native_steps import CopyTable
from oprack_onednn.chain.parameters import FromConstants


@dataclass(frozen=True, eq=False)
class Axis:
    """A small kernel along one dim.

    sums: [results, taps of the small kernel, taps of the convolution]. margin: results of each pixel, at both ends,
    that are not this kernel's.
    """

    sums: np.ndarray
    margin: int = 0

    @property
    def results(self) -> int:
        return self.sums.shape[0]

    @property
    def taps(self) -> int:
        return self.sums.shape[1]

    @property
    def pad(self) -> int:
        """Of the image, on both sides."""
        return self.taps // 2

    def table(self, size: int, factor: int) -> CopyTable:
        """Where results go along this dim of `size` pixels."""
        return _table(self.taps, self.margin, size, factor)


@lru_cache(maxsize=256)
def _table(taps: int, margin: int, size: int, factor: int) -> CopyTable:
    if taps == 1:
        # all results of a pixel, but for those at both ends that are not this kernel's, are one and the same
        found = [(j, 0, j * factor + i, 1) for j in range(size) for i in range(margin, factor - margin)]
    else:
        # the first result of the first pixel and the last of the last; the others lie side by side in pairs
        found = [(0, 1, 0, 1), *((i, 0, i * factor - 1, 2) for i in range(1, size)), (size, 0, factor * size - 1, 1)]
    return CopyTable(found)


_ENDS = Axis(np.array([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]], np.float32))
_INNER = Axis(np.ones((1, 1, 3), np.float32), 1)
_WHOLE = {window: Axis(np.eye(window, dtype=np.float32)[None]) for window in (1, 3)}


def _axes(factor: int, window: int) -> tuple[Axis, ...]:
    if factor == 1 or window == 1:
        return (_WHOLE[window],)
    return (_ENDS,) if factor == 2 else (_ENDS, _INNER)


@dataclass(frozen=True)
class Piece:
    """A small convolution. row: where its weights begin in what `expanded` gives, by taps, then results."""

    high: Axis
    wide: Axis
    row: int

    @property
    def results(self) -> int:
        return self.high.results * self.wide.results

    @property
    def taps(self) -> int:
        return self.high.taps * self.wide.taps


# The parts follow from three small numbers; every shape of an op asks for them again.
@lru_cache(maxsize=256)
def pieces(factor: int, outputs: int, window: int) -> tuple[Piece, ...]:
    """The small convolutions that make up one with `outputs` channels over repeated pixels."""
    found, row = [], window**2 * outputs if factor > 1 else 0
    for high, wide in product(_axes(factor, window), repeat=2):
        piece = Piece(high, wide, row)
        found.append(piece)
        row += piece.taps * piece.results * outputs
    return tuple(found)


def expanded(w: np.ndarray, factor: int) -> np.ndarray:
    """Weights [K, C, n, n] as rows [*, C]: the taps, then what each of `pieces` adds up from them."""
    c, window = w.shape[1:3]
    rows = [w.transpose(2, 3, 0, 1).reshape(-1, c)]
    if factor > 1:
        # Sums of taps are rounded once, as the taps themselves were when they were trained.
        taps = rows[0].reshape(window**2, -1).astype(np.float64)
        for high, wide in product(_axes(factor, window), repeat=2):
            chosen = np.einsum("ptd,que->tupqde", high.sums, wide.sums).reshape(-1, window**2)
            rows.append((chosen @ taps).reshape(-1, c).astype(w.dtype))
    # with one result the taps are a view whose columns lie first in memory, and joined they would keep that order
    return np.ascontiguousarray(np.concatenate(rows))


EXPANDED = FromConstants(lambda arrays, factor: expanded(*arrays, factor))
