"""Kernels of reduce_sum and of its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel
from oprack.tensor import ShapeOnly, numpy_dtype
from oprack.types import ALL_DTYPES

from oprack_math.kernels._numeric import accumulator
from oprack_math.kernels._reduce import axes_of, spread, total
from oprack_math.kernels._sets import BOTH
from oprack_math.kernels.reduce._family import floats_summing


def _specialize_sum(call: KernelSpecialization) -> Callable[..., Any]:
    summing, dim, everything = floats_summing(call), call.attrs["dim"], call.attrs["reduce_all"]
    return summing and (lambda X: summing(X, axes_of(X.ndim, dim, everything)))


@kernel("reduce_sum", place=BOTH, dtypes=ALL_DTYPES, specialize=_specialize_sum)
def reduce_sum(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, out_dtype: int, xp: ArrayModule) -> Array:
    """Sum over some dims."""
    if out_dtype >= 0:
        dtype = numpy_dtype(out_dtype)
    else:
        dtype = numpy_dtype("int64") if X.dtype.name in ("bool", "int32") else X.dtype
    axes = axes_of(X.ndim, dim, reduce_all)
    return total(X, axes, keep_dim, xp, accumulator(dtype)).astype(dtype, copy=False)


@kernel("reduce_sum_grad", place=BOTH, dtypes=ALL_DTYPES)
def reduce_sum_grad(X: ShapeOnly, Out_grad: Array, *, dim: list[int], reduce_all: bool, xp: ArrayModule) -> Array:
    """Out@GRAD at every element."""
    return spread(Out_grad, X, axes_of(X.ndim, dim, reduce_all), xp)
