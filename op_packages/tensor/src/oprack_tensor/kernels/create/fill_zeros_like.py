"""Kernels of fill_zeros_like."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows, ShapeOnly


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like(X: ShapeOnly, *, xp: ArrayModule) -> Array:
    return xp.zeros(X.shape, X.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_rows(X: SelectedRows, *, xp: ArrayModule):
    return xp.zeros(X.shape, X.value.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_array(X: LoDTensorArray, *, xp: ArrayModule) -> LoDTensorArray:
    return LoDTensorArray(
        None if t is None else LoDTensor(xp.zeros_like(t.array), t.lod, place=t.place, check=False) for t in X
    )
