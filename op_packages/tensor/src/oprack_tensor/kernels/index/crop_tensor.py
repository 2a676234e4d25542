"""Kernels of crop_tensor and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.index._crop import part, placed


@kernel("crop_tensor", place=("cpu", "cuda"))
def crop_tensor(
    X: Any,
    Shape: Any = None,
    ShapeTensor: Any = None,
    Offsets: Any = None,
    OffsetsTensor: Any = None,
    *,
    shape: list[int],
    offsets: list[int],
) -> Any:
    """A part of X."""
    return part(X, to_ints(Offsets, OffsetsTensor, offsets), to_ints(Shape, ShapeTensor, shape))


@kernel("crop_tensor_grad", place=("cpu", "cuda"))
def crop_tensor_grad(
    X: Any, Out_grad: Any, Offsets: Any = None, OffsetsTensor: Any = None, *, offsets: list[int], xp: Any
) -> Any:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, OffsetsTensor, offsets), xp)
