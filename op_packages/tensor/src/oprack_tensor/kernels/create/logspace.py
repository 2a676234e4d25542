"""Kernel of logspace."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import numpy_dtype


@kernel("logspace", place=("cpu", "cuda"))
def logspace(Start: Array, Stop: Array, Num: Array, Base: Array, *, dtype: int, xp: ArrayModule) -> Array:
    """Powers of the base at even steps."""
    wanted, num = numpy_dtype(dtype), int(Num.reshape(-1)[0])
    if num < 1:
        raise InvalidArgumentError(f"op logspace: Num is {num}; expected at least 1")
    # converted first, as integers would lose their fraction only then
    start, stop, base = (float(t.reshape(-1)[0].astype(wanted)) for t in (Start, Stop, Base))
    return xp.power(base, xp.linspace(start, stop, num)).astype(wanted)
