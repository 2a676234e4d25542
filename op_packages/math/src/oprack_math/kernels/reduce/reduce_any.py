"""Kernel of reduce_any."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.reduce._family import tensor_axes


@kernel("reduce_any", place=BOTH, dtypes=ALL_DTYPES)
def reduce_any_true(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
    xp: ArrayModule,
) -> Array:
    """Whether any is true."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.any(X, axis=axes, keepdims=keep_dim)
