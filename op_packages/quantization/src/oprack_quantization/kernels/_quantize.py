"""Rounding to integers that a float holds, and scales."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def greatest(bit_length: int) -> int:
    """The greatest integer of so many bits, one of which is the sign."""
    return 2 ** (bit_length - 1) - 1


def along(scale: Array, rank: int, axis: int) -> Array:
    """Scales of channels, ready to be multiplied with a tensor of this rank."""
    return scale.reshape(-1, *(1,) * (rank - 1 - axis)) if axis >= 0 else scale.reshape((1,) * rank)


def abs_max(x: Array, xp: ArrayModule, axis: int = -1) -> Array:
    """The greatest absolute value: [1], or [C] of each channel along `axis`; 0 of nothing."""
    if not x.size:
        return xp.zeros(x.shape[axis] if axis >= 0 else 1, x.dtype)
    if axis < 0:
        return xp.abs(x).max().reshape(1)
    return xp.abs(x).max(axis=tuple(i for i in range(x.ndim) if i != axis))


def quantize(x: Array, scale: Array, bit_length: int, round_type: int, xp: ArrayModule) -> Array:
    """Integers B x / scale, as floats.

    Args:
        x: Numbers.
        scale: What broadcasts with x.
        bit_length: Bits of an integer.
        round_type: 0: ties to even, then cut to [-B - 1, B]; 1: x cut to [-scale, scale], then ties away from zero.
        xp: NumPy or CuPy.
    """
    bound = x.dtype.type(greatest(bit_length))
    scale = scale.reshape(()) if scale.size == 1 else scale  # one number, for which NumPy has faster loops
    # Paddle adds this to a scale of zero, so that zeros stay zeros
    tiny = scale <= 1e-30
    factor = bound * (1 / xp.where(tiny, scale + x.dtype.type(1e-6), scale))
    if round_type == 0:
        out = xp.asarray(factor * x)  # of a single number NumPy makes no array
        xp.rint(out, out=out)
        return xp.clip(out, -bound - 1, bound, out=out)
    out = xp.asarray(xp.clip(x, -scale, scale))
    out *= factor
    out += xp.copysign(x.dtype.type(0.5), out)
    return xp.trunc(out, out=out)


def quantize_dequantize(x: Array, scale: Array, bit_length: int, round_type: int, xp: ArrayModule) -> Array:
    """What the integers stand for."""
    out = quantize(x, scale, bit_length, round_type, xp)
    out *= scale.reshape(()) if scale.size == 1 else scale
    out /= x.dtype.type(greatest(bit_length))
    return out


def averaged(x: Array, accum: Array, state: Array, rate: float, xp: ArrayModule) -> tuple[Array, Array, Array]:
    """Scale, weight and sum of the moving average of the greatest absolute value, this step included."""
    rate = x.dtype.type(rate)
    new_state, new_accum = rate * state + x.dtype.type(1), rate * accum + abs_max(x, xp)
    return new_accum / new_state, new_state, new_accum


def copied(x: Array | None) -> Array | None:
    """A copy of what is there."""
    return None if x is None else x.copy()
