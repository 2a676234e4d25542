"""Kernels of fill_zeros_like."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like(X, *, xp):
    return xp.zeros(X.shape, X.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_rows(X: SelectedRows, *, xp):
    return xp.zeros(X.shape, X.value.dtype)


@kernel("fill_zeros_like", place=("cpu", "cuda"))
def fill_zeros_like_array(X: LoDTensorArray, *, xp):
    return LoDTensorArray(
        None if t is None else LoDTensor(xp.zeros_like(t.array), t.lod, place=t.place, check=False) for t in X
    )
