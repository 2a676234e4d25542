"""Kernels of tile."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels._reduce import sum_over


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


@kernel("tile_grad", place=("cpu", "cuda"))
def tile_grad(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    # Out's dim i is (repetitions, dim of X)
    full = (1,) * (Out_grad.ndim - X.ndim) + X.shape
    pairs = [n for d, o in zip(full, Out_grad.shape, strict=True) for n in (o // d if d else 1, d)]
    return sum_over(Out_grad.reshape(pairs), tuple(range(0, len(pairs), 2)), xp).reshape(X.shape)
