"""Kernels of crop and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels.index._crop import part, placed


@kernel("crop", place=("cpu", "cuda"))
def crop(X: Any, Y: Any = None, Offsets: Any = None, *, offsets: list[int], shape: list[int]) -> Any:
    """A part of X."""
    return part(X, to_ints(Offsets, None, offsets), shape if Y is None else Y.shape)


@kernel("crop_grad", place=("cpu", "cuda"))
def crop_grad(X: Any, Out_grad: Any, Offsets: Any = None, *, offsets: list[int], xp: Any) -> Any:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, None, offsets), xp)
