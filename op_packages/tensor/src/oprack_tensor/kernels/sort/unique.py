"""Kernel of unique."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype

from oprack_tensor.kernels.sort._unique import by_appearance


@kernel("unique")
def unique(
    X: Array,
    *,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: list[int],
    dtype: int,
    is_sorted: bool,
) -> tuple[Array | None, ...]:
    kind = numpy_dtype(dtype)
    if not is_sorted:
        out, inverse, _ = by_appearance(X)
        return out, None, inverse.astype(kind), None
    out, first, inverse, counts = np.unique(
        X, return_index=True, return_inverse=True, return_counts=True, axis=axis[0] if axis else None
    )
    return (
        out,
        first.astype(kind) if return_index else None,
        inverse.reshape(-1).astype(kind),  # the output is always there, also in programs that do not ask for it
        counts.astype(kind) if return_counts else None,
    )
