"""Kernels of sequence_mask."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS, INTEGERS


@kernel("sequence_mask", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_mask(
    X: Array, MaxLenTensor: Array | None = None, *, maxlen: int, out_dtype: int, xp: ArrayModule
) -> Array:
    """A comparison with 0, 1, 2 ...; the size of the result is read from X when maxlen is -1."""
    if MaxLenTensor is not None:
        maxlen = int(MaxLenTensor.reshape(-1)[0])
    elif maxlen < 0:
        maxlen = max(int(X.max()), 0) if X.size else 0
    return (xp.arange(maxlen) < X[..., None]).astype(numpy_dtype(out_dtype))
