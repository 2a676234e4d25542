"""Kernels of crop_tensor and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.index._crop import part, placed


@kernel("crop_tensor", place=("cpu", "cuda"))
def crop_tensor(
    X: Array,
    Shape: Array | None = None,
    ShapeTensor: list[Array] | None = None,
    Offsets: Array | None = None,
    OffsetsTensor: list[Array] | None = None,
    *,
    shape: list[int],
    offsets: list[int],
) -> Array:
    """A part of X."""
    return part(X, to_ints(Offsets, OffsetsTensor, offsets), to_ints(Shape, ShapeTensor, shape))


@kernel("crop_tensor_grad", place=("cpu", "cuda"))
def crop_tensor_grad(
    X: ShapeOnly,
    Out_grad: Array,
    Offsets: Array | None = None,
    OffsetsTensor: list[Array] | None = None,
    *,
    offsets: list[int],
    xp: ArrayModule,
) -> Array:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, OffsetsTensor, offsets), xp)
