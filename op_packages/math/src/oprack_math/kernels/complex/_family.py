"""Complex numbers made of their parts."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def of_parts(real: Array, imag: Array, xp: ArrayModule) -> Array:
    """real + i imag, of one float dtype each; a part that is a number stands for every element."""
    part = real if hasattr(real, "dtype") else imag
    shape = (xp.broadcast_arrays(real, imag)[0] if hasattr(real, "dtype") and hasattr(imag, "dtype") else part).shape
    out = xp.empty(shape, xp.result_type(part.dtype, xp.complex64))
    out.real, out.imag = real, imag
    return out
