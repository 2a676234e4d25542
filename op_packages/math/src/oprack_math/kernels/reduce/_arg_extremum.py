"""What arg_max and arg_min share."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule


def position(
    find: Any, x: Array, worst: float, axis: int, keepdims: bool, flatten: bool, dtype: int, xp: ArrayModule
) -> Array:
    """find(x) along axis, with NaN counted as `worst`."""
    if x.dtype.kind not in "iu":
        x = xp.where(xp.isnan(x), x.dtype.type(worst), x)
    kind = xp.int32 if dtype == 2 else xp.int64
    if flatten or not x.ndim:
        found = xp.asarray(find(x.reshape(-1), axis=0)).astype(kind)
        return found.reshape((1,) * x.ndim) if keepdims and flatten else found
    found = find(x, axis=axis)
    return (xp.expand_dims(found, axis) if keepdims else found).astype(kind, copy=False)
