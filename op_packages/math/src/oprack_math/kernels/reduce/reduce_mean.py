"""Kernels of reduce_mean and of its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES, BOOL

from oprack_math.kernels._numeric import accumulator, divide
from oprack_math.kernels._reduce import axes_of, count_of, spread, total
from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.reduce._family import floats_summing


def _specialize_mean(call: KernelSpecialization) -> Callable[..., Any] | None:
    summing, dim, everything = floats_summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    if summing is None:
        return None

    def mean(X: Array) -> Array:
        axes = axes_of(X.ndim, dim, everything)
        found = summing(X, axes)
        return found / found.dtype.type(count_of(X.shape, axes))

    return mean


@kernel("reduce_mean", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_mean)
def reduce_mean(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, xp: ArrayModule) -> Array:
    """Mean over some dims."""
    axes = axes_of(X.ndim, dim, reduce_all)
    if X.dtype.kind == "b":
        return xp.any(X, axis=axes, keepdims=keep_dim)
    count = count_of(X.shape, axes)
    summed = total(X, axes, keep_dim, xp, accumulator(X.dtype))
    return divide(summed, summed.dtype.type(count), xp).astype(X.dtype, copy=False)


@kernel("reduce_mean_grad", place=BOTH, dtypes=FLOATING | BOOL)
def reduce_mean_grad(X: ShapeOnly, Out_grad: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule) -> Array:
    """Out@GRAD / n at every element."""
    axes = axes_of(X.ndim, dim, reduce_all)
    count = Out_grad.dtype.type(count_of(X.shape, axes))
    return spread(divide(Out_grad, count, xp), X, axes, xp)
