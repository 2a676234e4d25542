"""The transforms of Winograd's algorithm by the compiled library (winograd.c): two steps in place of some twelve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.dnnl import _c
from oprack_onednn.kernels._winograd_tiles import Tiling
from oprack_onednn.ops.post_ops import RESIDUAL, encode
from oprack_onednn.ops.winograd_conv2d import RESULTS, TILE

if TYPE_CHECKING:
    from oprack_onednn.chain.primitive_chain import PrimitiveChain
    from oprack_onednn.dnnl.native import Memory
    from oprack_onednn.dnnl.operands import External

_RELU = encode("relu", [])

# What one core does in a nanosecond: products and sums, and bytes of weights that are read past its caches; what a tile
# of 16 channels takes to be transformed there and back, and what the two steps more that there are take.
_OPERATIONS, _BYTES, _CACHE = 115.0, 40.0, 1 << 20
_FORTH, _BACK, _STEPS, _STEP = 65.0, 50.0, 8000.0, 1000.0
# Channels of a vector, of which there have to be as many.
_LANES = 16
# Channels from which on it does not count that the last vector is not full.
_MANY = 64
# By how much it has to be faster: the second thread gains less where there is less to do.
_WORTH = 0.65


def pays(n: int, c: int, k: int, high: int, wide: int) -> bool:
    """Whether convolutions of n images with c channels to results [k, high, wide] are faster so, by these figures."""
    if any(channels % _LANES and channels < _MANY for channels in (c, k)):
        return False
    tiles = n * -(-high // RESULTS) * -(-wide // RESULTS)
    vectors_in, vectors_out = -(-c // _LANES), -(-k // _LANES)
    weights = 4 * TILE * TILE * c * k

    def nanoseconds(operations: float, weights: float) -> float:
        return 2 * operations / _OPERATIONS + (weights / _BYTES if weights > _CACHE else 0)

    own = nanoseconds(tiles * c * _LANES * vectors_out * TILE * TILE, weights) + _STEPS
    own += tiles * (vectors_in * _FORTH + vectors_out * _BACK)
    direct = 2 * 9 * n * high * wide * c * k / _OPERATIONS + _STEP
    return own < _WORTH * direct


class NativeTransforms:
    """Both transforms of tiles, with what follows them. plane: rows of each of the 36 matrices."""

    def __init__(self, tiling: Tiling, post_ops: tuple[str, ...]) -> None:
        self._tiling, self._post_ops = tiling, post_ops
        # an odd number: matrices whose distances are powers of 2 would share few lines of the caches
        self.plane = tiling.tiles | 1

    @staticmethod
    def serves(channels: int, post_ops: tuple[str, ...]) -> bool:
        """Whether the library is there for this CPU, has a vector of channels, and does what follows."""
        library = RUNNER.library
        if library is None or channels < _LANES or not library.oprack_winograd_serves():
            return False
        others = [p for p in post_ops if p != RESIDUAL]
        return all(p == _RELU for p in others) and len(post_ops) - len(others) < 2

    def add_forth(self, chain: PrimitiveChain, images: Memory, tiles: Memory, first: int) -> None:
        """Append the transform of tiles from row `first` on."""
        t = self._tiling
        shape = t.n, t.c, t.height, t.width, t.top, t.left
        settings = (*shape, first, t.part, t.columns, self.plane, 0, 0, 0)
        chain.add(NativeStep("oprack_winograd_forth", settings), {_c.SRC: images, _c.DST: tiles})

    def add_back(
        self,
        chain: PrimitiveChain,
        products: Memory,
        bias: External | None,
        added: Memory | None,
        results: Memory,
        first: int,
    ) -> None:
        """Append the transform of products for tiles from row `first` on into results."""
        t, post_ops = self._tiling, self._post_ops
        before, after = 0, bool(post_ops)
        if RESIDUAL in post_ops:
            at = post_ops.index(RESIDUAL)
            before, after = 1 + (at > 0), at + 1 < len(post_ops)
        shape = t.n, t.k, t.high, t.wide, 0, 0
        settings = (*shape, first, t.part, t.columns, self.plane, int(bias is not None), before, int(after))
        memory = {_c.SRC: products}
        if bias is not None:
            memory[_c.BIAS] = bias
        if added is not None:
            memory[_c.SRC_1] = added
        chain.add(NativeStep("oprack_winograd_back", settings), memory | {_c.DST: results})
