"""Sigmoid, softplus and the normal distribution: vectorised, safe at both ends, for NumPy and CuPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule

_BLOCK = 8192

# erfc(z) = t exp(-z^2 + P(2t - 1)) with t = 2 / (2 + z), z >= 0. P was fitted at Chebyshev nodes to math.erfc by
# least squares; the relative error is 1e-7 (float32) and 5e-15 (float64). Highest power first.
_ERFC32 = (
    8.000737204031086e-06, 0.00033373589430759867, -0.00022791096382878204, -0.0020487347612783494,
    0.0017940662480412158, 0.008703812035712489, -0.009880019323489602, -0.046874888178968094,
    0.04734388761293002, 0.6726422171554929, -0.6717940916807748,
)  # fmt: skip
_ERFC64 = (
    3.415286693485623e-08, -2.673823419906048e-10, -3.142368907009042e-07, 1.6554107871090404e-07,
    1.3441306940272007e-06, -1.7263870659573167e-06, -3.0484228902556313e-06, 8.970473272632617e-06,
    2.1413287679035017e-07, -3.043562858399657e-05, 3.170492725953314e-05, 7.15029710772143e-05,
    -0.00017428872528974318, -9.376298292196152e-05, 0.0006736755785816069, -0.00014624194943068164,
    -0.002345812069690013, 0.001758933040739602, 0.008824938527597, -0.009872689337671124,
    -0.04689561023044831, 0.047343306841256344, 0.6726432239776574, -0.6717940840566895,
)  # fmt: skip


def sigmoid(x: Array, xp: ArrayModule, out: Array | None = None) -> Array:
    """1 / (1 + exp(-x)); where exp overflows, 1 / inf = 0 is the right limit. float16 and wider, complex too."""
    y = xp.empty_like(x) if out is None else out
    xp.negative(x, out=y)
    with np.errstate(over="ignore"):
        xp.exp(y, out=y)
    y += x.dtype.type(1)
    return xp.reciprocal(y, out=y) if x.dtype.kind in "fc" else xp.divide(x.dtype.type(1), y, out=y)


def softplus(x: Array, xp: ArrayModule) -> Array:
    """ln(1 + exp(x)) without overflow."""
    if x.dtype.kind == "c":
        return xp.log1p(xp.exp(x))
    return xp.maximum(x, x.dtype.type(0)) + xp.log1p(xp.exp(-abs(x)))


def normal_cdf(x: Array, xp: ArrayModule) -> Array:
    """P(N(0, 1) <= x); its relative error is that of the dtype on the left tail too."""
    real = x if x.dtype.itemsize >= 4 else x.astype("float32")
    kind = real.dtype.type
    z = xp.abs(real)
    z *= kind(math.sqrt(0.5))
    t = kind(2) / (z + kind(2))
    u = t * kind(2)
    u -= kind(1)
    coefficients = _ERFC64 if real.dtype.itemsize == 8 else _ERFC32
    p = u * kind(coefficients[0])
    for c in coefficients[1:-1]:
        p += kind(c)
        p *= u
    p += kind(coefficients[-1])
    z *= z
    p -= z
    half = xp.exp(p)
    half *= t
    half *= kind(0.5)
    return xp.where(real > 0, kind(1) - half, half).astype(x.dtype, copy=False)


def normal_pdf(x: Array, xp: ArrayModule) -> Array:
    """Density of N(0, 1) at x."""
    kind = x.dtype.type
    return xp.exp(x * x * kind(-0.5)) * kind(1 / math.sqrt(2 * math.pi))


def blockwise(function: Callable[..., Any], xp: ArrayModule, *arrays: Array) -> Array:
    """function(*arrays) of arrays of one shape, in blocks that stay in the cache: it takes many passes over them."""
    x = arrays[0]
    if xp is not np or x.size <= _BLOCK:
        return function(*(a.reshape(-1) for a in arrays)).reshape(x.shape)
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    out = np.empty(x.size, x.dtype)
    for i in range(0, x.size, _BLOCK):
        out[i : i + _BLOCK] = function(*(a[i : i + _BLOCK] for a in flat))
    return out.reshape(x.shape)
