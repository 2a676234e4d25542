"""Kernels of tile."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.shape._tile import sum_of_tiles


@kernel("tile", place=("cpu", "cuda"))
def tile(
    X: Array,
    RepeatTimes: Array | None = None,
    repeat_times_tensor: list[Array] | None = None,
    *,
    repeat_times: list[int],
    xp: ArrayModule,
) -> Array:
    return xp.tile(X, tuple(to_ints(RepeatTimes, repeat_times_tensor, repeat_times)))


tile_grad = kernel("tile_grad", place=("cpu", "cuda"))(sum_of_tiles)
