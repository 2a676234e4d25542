"""Kernels of gelu and its gradient."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels._smooth import blockwise, normal_cdf, normal_pdf
from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("gelu", place=BOTH, dtypes=REALS)
def gelu(X: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    cdf = _tanh_cdf if approximate else normal_cdf
    return blockwise(lambda x: x * cdf(x, xp), xp, X)


@kernel("gelu_grad", place=BOTH, dtypes=REALS)
def gelu_grad(X: Array, Out_grad: Array, *, approximate: bool, xp: ArrayModule) -> Array:
    return blockwise(lambda x, g: g * _gelu_slope(x, approximate, xp), xp, X, Out_grad)


def _tanh_cdf(x: Array, xp: ArrayModule) -> Array:
    """The approximation of the normal distribution that gelu's formula with tanh contains."""
    kind = x.dtype.type
    inner = x * (kind(1) + kind(0.044715) * x * x) * kind(math.sqrt(2 / math.pi))
    return kind(0.5) * (kind(1) + xp.tanh(inner))


def _gelu_slope(x: Array, approximate: bool, xp: ArrayModule) -> Array:
    if not approximate:
        return normal_cdf(x, xp) + x * normal_pdf(x, xp)
    kind = x.dtype.type
    cdf = _tanh_cdf(x, xp)
    inner = kind(math.sqrt(2 / math.pi)) * (kind(1) + kind(3 * 0.044715) * x * x)
    return cdf + kind(2) * x * (cdf - cdf * cdf) * inner
