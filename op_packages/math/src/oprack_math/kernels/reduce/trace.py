"""Kernels of trace and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_math.kernels._numeric import accumulator
from oprack_math.kernels._sets import BOTH, NUMBERS


@kernel("trace", place=BOTH, dtypes=NUMBERS)
def trace(Input: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Sum of a diagonal."""
    total = xp.trace(Input, offset, axis1, axis2, dtype=accumulator(Input.dtype))
    return xp.asarray(total).astype(Input.dtype, copy=False)


@kernel("trace_grad", place=BOTH, dtypes=NUMBERS)
def trace_grad(Input: ShapeOnly, Out_grad: Array, *, offset: int, axis1: int, axis2: int, xp: ArrayModule) -> Array:
    """Out@GRAD on the diagonal."""
    grad = xp.zeros(Input.shape, Out_grad.dtype)
    matrices = xp.moveaxis(grad, (axis1, axis2), (-2, -1))
    rows, columns = matrices.shape[-2:]
    i = xp.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    matrices[..., i - min(offset, 0), i + max(offset, 0)] = Out_grad[..., None]
    return grad
