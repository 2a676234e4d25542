"""The tiles that onednn_winograd_conv2d computes in, and the matrices that transform them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array

from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.ops.winograd_conv2d import RESULTS, TILE, matrices

# Bytes of gathered tiles up to which a part of the images is computed at a time, so that it stays in the caches.
_PART = 1 << 21


def squares() -> tuple[Array, Array]:
    """The matrices that transform a tile's pixels [36, 36], and products into results [16, 36]."""
    back, _, forth = (np.array(m) for m in matrices())
    return np.kron(forth, forth), np.kron(back, back)


class Tiling(NamedTuple):
    """How a result is computed in tiles.

    Attributes:
        n, c, k: Images, channels and filters.
        top, left: Zeros before the images.
        height, width: Of an image.
        high, wide: Of a result.
        rows, columns: Tiles, of which the last ones may reach over the edges.
        part: Rows of tiles that are computed at a time, so that they stay in the caches.
    """

    n: int
    c: int
    k: int
    top: int
    left: int
    height: int
    width: int
    high: int
    wide: int
    rows: int
    columns: int
    part: int

    @property
    def tiles(self) -> int:
        """Tiles of a part, in all images."""
        return self.n * self.part * self.columns

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape [N, H, W, C] of the images with zeros around them, as far as whole tiles reach."""
        return self.n, self.rows * RESULTS + 2, self.columns * RESULTS + 2, self.c


def tiling(x: Array, u: Array, paddings: tuple[int, ...]) -> Tiling:
    """The tiles for images `x` and a transformed filter `u`. Raises NotServedError."""
    n, c, h, w = x.shape
    top, bottom, left, right = paddings
    high, wide = h + top + bottom - 2, w + left + right - 2
    if 0 in x.shape or min(high, wide, top, left) < 0 or not high or not wide or not u.flags.c_contiguous:
        raise NotServedError("an empty tensor, or a filter that is a view")
    rows, columns = -(-high // RESULTS), -(-wide // RESULTS)
    row_bytes = 4 * TILE * TILE * n * columns * c
    # The largest part that stays in the caches and divides the rows, so that all parts have one shape.
    part = next(r for r in range(rows, 0, -1) if rows % r == 0 and (r == 1 or r * row_bytes <= _PART))
    return Tiling(n, c, u.shape[2], top, left, h, w, high, wide, rows, columns, part)
