"""Kernel of empty."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.dims import to_ints


@kernel("empty", place=("cpu", "cuda"))
def empty(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    dtype: int,
    xp: ArrayModule,
) -> Array:
    """Zeros, which an array library need not touch before they are read."""
    dims = to_ints(ShapeTensor, ShapeTensorList, shape)
    if any(d < 0 for d in dims):
        raise InvalidArgumentError(f"op empty: shape is {dims}; expected no negative size when the op runs")
    return xp.zeros(dims, numpy_dtype(dtype))
