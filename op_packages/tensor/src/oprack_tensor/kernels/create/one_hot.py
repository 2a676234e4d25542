"""Kernel of one_hot."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.kernels._index import check_index


@kernel("one_hot", place=("cpu", "cuda"))
def one_hot(
    X: Array, depth_tensor: Array | None = None, *, depth: int, dtype: int, allow_out_of_range: bool, xp: ArrayModule
) -> Array:
    """Every id against all classes."""
    depth = depth if depth_tensor is None else int(depth_tensor.reshape(-1)[0])
    if not allow_out_of_range:
        check_index("one_hot", "X", X, depth, xp)
    return (X == xp.arange(depth, dtype=X.dtype)).astype(numpy_dtype(dtype))
