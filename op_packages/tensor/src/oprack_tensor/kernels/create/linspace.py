"""Kernel of linspace."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("linspace", place=("cpu", "cuda"))
def linspace(Start: Array, Stop: Array, Num: Array, *, dtype: int, xp: ArrayModule) -> Array:
    wanted, num = numpy_dtype(dtype), int(Num.reshape(-1)[0])
    if num < 1:
        raise InvalidArgumentError(f"op linspace: Num is {num}; expected at least 1")
    # both ends are converted first, as integers would lose their fraction only then
    start, stop = (float(t.reshape(-1)[0].astype(wanted)) for t in (Start, Stop))
    return xp.linspace(start, stop, num).astype(wanted)
