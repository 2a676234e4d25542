"""Kernels of reduce_amax and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, kernel

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._family import shared_at_extremum, tensor_axes


@kernel("reduce_amax", place=BOTH, dtypes=REAL)
def reduce_amax(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
) -> Array:
    """Greatest element over some dims."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return X.max(axis=axes, keepdims=keep_dim)


reduce_amax_grad = kernel("reduce_amax_grad", place=BOTH, dtypes=REAL)(shared_at_extremum)
