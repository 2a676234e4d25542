"""Kernel of bincount."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL

_MOST = 1 << 31


@kernel("bincount", place=BOTH, dtypes=REAL)
def bincount(X: Array, Weights: Array | None = None, *, minlength: int, xp: ArrayModule) -> Array:
    """Counts, or sums of weights, of each integer."""
    kind = xp.int64 if Weights is None else Weights.dtype if Weights.dtype.name == "float32" else xp.float64
    if not X.size:
        return xp.zeros(0, kind)
    x = X.astype(xp.int64)
    least, most = int(x.min()), int(x.max())
    if least < 0 or most >= _MOST:
        raise InvalidArgumentError(
            f"op bincount: X has values from {least} to {most}; expected integers from 0 to {_MOST - 1}, since Out has "
            "an element for each of them"
        )
    weights = None if Weights is None else Weights.astype(kind, copy=False)
    return xp.bincount(x, weights, minlength).astype(kind, copy=False)
