"""Kernels of shape."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.tensor import SelectedRows


@kernel("shape", place=("cpu", "cuda"))
def shape(Input, *, xp):
    return xp.asarray(Input.shape, dtype="int32")


@kernel("shape", place=("cpu", "cuda"))
def shape_of_rows(Input: SelectedRows, *, xp):
    return xp.asarray(Input.value.shape, dtype="int32")
