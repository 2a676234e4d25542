"""Kernels of flatten_contiguous_range: views."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import product


@kernel("flatten_contiguous_range", place=("cpu", "cuda"), view=True)
def flatten_contiguous_range(X: Array, *, start_axis: int, stop_axis: int, xp: ArrayModule) -> tuple[Array, Array]:
    dims = X.shape or (1,)
    start, stop = start_axis % len(dims), stop_axis % len(dims)
    out = X.reshape((*dims[:start], product(dims[start : stop + 1]), *dims[stop + 1 :]))
    return out, xp.empty((0, *X.shape), X.dtype)


@kernel("flatten_contiguous_range_grad", place=("cpu", "cuda"), view=True)
def flatten_contiguous_range_grad(Out_grad: Array, XShape: ShapeOnly) -> Array:
    return Out_grad.reshape(XShape.shape[1:])
