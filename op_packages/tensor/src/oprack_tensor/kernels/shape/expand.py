"""Kernels of expand and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.shape._tile import sum_of_tiles


@kernel("expand", place=("cpu", "cuda"))
def expand(
    X: Array,
    ExpandTimes: Array | None = None,
    expand_times_tensor: list[Array] | None = None,
    *,
    expand_times: list[int],
    xp: ArrayModule,
) -> Array:
    """X repeated."""
    return xp.tile(X, tuple(to_ints(ExpandTimes, expand_times_tensor, expand_times)))


expand_grad = kernel("expand_grad", place=("cpu", "cuda"))(sum_of_tiles)
