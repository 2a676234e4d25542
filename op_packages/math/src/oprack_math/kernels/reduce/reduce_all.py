"""Kernel of reduce_all."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES

from oprack_math.kernels._reduce import axes_of
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.reduce._family import tensor_axes


@kernel("reduce_all", place=BOTH, dtypes=ALL_DTYPES)
def reduce_all_true(X, AxisTensor=None, AxisTensorList=(), *, dim, keep_dim, reduce_all, xp):
    """Whether all are true."""
    axes = axes_of(X.ndim, tensor_axes(dim, AxisTensor, AxisTensorList), reduce_all)
    return xp.all(X, axis=axes, keepdims=keep_dim)
