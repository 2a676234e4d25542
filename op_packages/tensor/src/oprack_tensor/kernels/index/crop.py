"""Kernels of crop and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.index._crop import part, placed


@kernel("crop", place=("cpu", "cuda"))
def crop(
    X: Array, Y: Array | None = None, Offsets: Array | None = None, *, offsets: list[int], shape: list[int]
) -> Array:
    """A part of X."""
    return part(X, to_ints(Offsets, None, offsets), shape if Y is None else Y.shape)


@kernel("crop_grad", place=("cpu", "cuda"))
def crop_grad(
    X: ShapeOnly, Out_grad: Array, Offsets: Array | None = None, *, offsets: list[int], xp: ArrayModule
) -> Array:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, None, offsets), xp)
