"""Kernels of pad and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import ALL_DTYPES

from oprack_nn.kernels.pad._family import PLACES, filled, inner


@kernel("pad", place=PLACES, dtypes=ALL_DTYPES)
def pad(X: Array, *, paddings: list[int], pad_value: float, xp: ArrayModule) -> Array:
    return filled(X, list(zip(paddings[::2], paddings[1::2], strict=True)), pad_value, xp)


@kernel("pad_grad", place=PLACES, dtypes=ALL_DTYPES)
def pad_grad(Out_grad: Array, *, paddings: list[int]) -> Array:
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    shape = [s - a - b for s, (a, b) in zip(Out_grad.shape, pairs, strict=True)]
    return Out_grad[inner(shape, pairs)].copy()
