"""Kernels of reduce_amin and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, kernel

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH, REAL
from oprack_math.kernels.reduce._family import shared_at_extremum, tensor_axes


@kernel("reduce_amin", place=BOTH, dtypes=REAL)
def reduce_amin(
    X: Array,
    AxisTensor: Array | None = None,
    AxisTensorList: Sequence[Array] = (),
    *,
    dim: list[int],
    keep_dim: bool,
    reduce_all: bool,
) -> Array:
    """Smallest element over some dims."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return X.min(axis=axes, keepdims=keep_dim)


reduce_amin_grad = kernel("reduce_amin_grad", place=BOTH, dtypes=REAL)(shared_at_extremum)
