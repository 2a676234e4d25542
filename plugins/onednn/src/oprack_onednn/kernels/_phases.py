"""A 3x3 convolution over images whose pixels were repeated f times along H and W, computed before they are repeated.

Of the f results that one pixel becomes along a dim, the first sees its neighbour before with one tap and itself with
two, the last sees itself with two and its neighbour behind with one, and those between see nothing but itself. So
along a dim there are two kernels: of two taps between neighbours j - 1 and j, which give the last result of j - 1 and
the first of j side by side (the image is padded by one pixel on both sides), and of one tap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

from oprack_onednn.kernels._derived import Derived

# [results, taps of the small kernel, taps of the convolution]
_FULL = np.eye(3, dtype=np.float32)[None]
_ENDS = np.array([[[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]]], np.float32)
_INNER = np.ones((1, 1, 3), np.float32)


@dataclass(frozen=True)
class Part:
    """Where some of a small convolution's results go along one dim.

    source: position of the first, and which of the results there. target: position in the whole. dims: (size, step
    in positions, step in results, step in the whole).
    """

    source: tuple[int, int]
    target: int
    dims: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Axis:
    """A small kernel along one dim. pad: of the image, on both sides."""

    taps: int
    results: int
    pad: int

    def parts(self, size: int, factor: int, outermost: bool = False) -> list[Part]:
        """Of an image of `size` pixels along this dim. outermost: no other dim has a larger step."""
        if self.taps == 1:
            return [Part((0, 0), 1, ((size, 1, 0, factor), (factor - 2, 0, 0, 1)))]
        # the first result of the first pixel and the last of the last; the others lie side by side in pairs
        edges = [Part((0, 1), 0, ()), Part((size, 0), factor * size - 1, ())]
        if outermost and size > 1:
            edges = [Part((0, 1), 0, ((2, size, -1, factor * size - 1),))]
        pairs = Part((1, 0), factor - 1, ((size - 1, 1, 0, factor), (2, 0, 1, 1)))
        return [*edges, pairs] if size > 1 else edges


_BY_TAPS = {1: Axis(1, 1, 0), 2: Axis(2, 2, 1), 3: Axis(3, 1, 1)}


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


def _kernels(factor: int) -> list[np.ndarray]:
    if factor == 1:
        return [_FULL]
    return [_ENDS] if factor == 2 else [_ENDS, _INNER]


@lru_cache(maxsize=256)
def pieces(factor: int, outputs: int) -> tuple[Piece, ...]:
    """The small convolutions that make up one with `outputs` channels over repeated pixels."""
    found, row = [], 9 * outputs if factor > 1 else 0
    for high, wide in product(_kernels(factor), repeat=2):
        piece = Piece(_BY_TAPS[high.shape[1]], _BY_TAPS[wide.shape[1]], row)
        found.append(piece)
        row += piece.taps * piece.results * outputs
    return tuple(found)


def expanded(w: np.ndarray, factor: int) -> np.ndarray:
    """Weights [K, C, 3, 3] as rows [*, C]: the nine taps, then what each of `pieces` adds up from them."""
    c = w.shape[1]
    rows = [w.transpose(2, 3, 0, 1).reshape(-1, c)]
    if factor > 1:
        for high, wide in product(_kernels(factor), repeat=2):
            sums = np.einsum("ptd,que,kcde->tupqkc", high, wide, w, dtype=np.float64)
            rows.append(sums.reshape(-1, c).astype(w.dtype))
    return np.concatenate(rows)


EXPANDED = Derived(expanded)
