"""Kernel of fill_any_like."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_tensor.kernels.create._constant import cast


@kernel("fill_any_like", place=("cpu", "cuda"))
def fill_any_like(X: ShapeOnly, *, value: float, dtype: int, xp: ArrayModule) -> Array:
    wanted = X.dtype if dtype < 0 else numpy_dtype(dtype)
    return xp.full(X.shape, cast(value, wanted), wanted)
