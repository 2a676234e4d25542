"""Modified Bessel functions of the first kind, orders 0 and 1, made of array operations to double precision.

Up to 30 the power series, all of whose terms are positive, so that nothing cancels; beyond it the asymptotic series
(Abramowitz and Stegun, 9.7.1), whose least term is below e^-60 there.
"""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule

_LIMIT = 30.0
_TERMS = 70
_ASYMPTOTIC_TERMS = 26


def _series(x: Array, order: int, xp: ArrayModule) -> Array:
    """I_order(x) for |x| up to _LIMIT, by Horner's rule."""
    quarter = x * x / 4
    total = xp.ones_like(x)
    for k in range(_TERMS, 0, -1):
        total = total * quarter / (k * (k + order)) + 1
    return total * x / 2 if order else total


def _scaled_asymptotic(x: Array, order: int, xp: ArrayModule) -> Array:
    """exp(-x) I_order(x) for x from _LIMIT on."""
    total, mu = xp.ones_like(x), 4 * order * order
    for k in range(_ASYMPTOTIC_TERMS, 0, -1):
        total = 1 - total * (mu - (2 * k - 1) ** 2) / (8 * k * x)
    return total / xp.sqrt(2 * xp.pi * x)


def bessel(x: Array, order: int, scaled: bool, xp: ArrayModule) -> Array:
    """I_order(x), or exp(-|x|) I_order(x), in the dtype of x; orders 0 and 1."""
    work = x.astype(xp.float32 if x.dtype.itemsize == 2 else xp.float64, copy=False)
    size = xp.abs(work)
    # the bounds keep each branch finite where the other one is taken; NaN passes through both
    small, large = xp.minimum(size, _LIMIT), xp.maximum(size, _LIMIT)
    near, far = _series(small, order, xp), _scaled_asymptotic(large, order, xp)
    if scaled:
        near = near * xp.exp(-small)
    else:
        # in two factors, since exp(x) overflows before the function does
        half = xp.exp(large / 2)
        far = half * far * half
    result = xp.where(size <= _LIMIT, near, far)
    return (xp.copysign(result, work) if order else result).astype(x.dtype, copy=False)
