"""Kernel of fill_any_like."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.kernels.create._constant import cast


@kernel("fill_any_like", place=("cpu", "cuda"))
def fill_any_like(X, *, value, dtype, xp):
    wanted = X.dtype if dtype < 0 else numpy_dtype(dtype)
    return xp.full(X.shape, cast(value, wanted), wanted)
