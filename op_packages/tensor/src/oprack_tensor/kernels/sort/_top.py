"""The largest or smallest elements along a dim."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

from oprack_tensor.kernels.sort._order import order_of


def top(X: Array, k: int, axis: int, largest: bool, xp: ArrayModule) -> tuple[Array, Array]:
    if not X.ndim:
        return X.copy(), xp.zeros((), xp.int64)
    axis += X.ndim if axis < 0 else 0
    index = order_of(X, axis, largest, xp)[(slice(None),) * axis + (slice(k),)]
    return xp.take_along_axis(X, index, axis), index.astype(xp.int64)
