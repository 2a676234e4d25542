"""Kernels of pad_constant_like and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.pad._family import PLACES, filled, inner


def _pairs(small: tuple[int, ...], large: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(0, b - a) for a, b in zip(small, large, strict=True)]


@kernel("pad_constant_like", place=PLACES, dtypes=ALL_DTYPES)
def pad_constant_like(X: ShapeOnly, Y: Array, *, pad_value: float, xp: ArrayModule) -> Array:
    """Y, filled up behind."""
    return filled(Y, _pairs(Y.shape, X.shape), pad_value, xp)


@kernel("pad_constant_like_grad", place=PLACES, dtypes=ALL_DTYPES)
def pad_constant_like_grad(Y: ShapeOnly, Out_grad: Array) -> Array:
    """The part of Y."""
    return Out_grad[inner(list(Y.shape), _pairs(Y.shape, Out_grad.shape))].copy()
