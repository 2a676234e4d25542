"""Repetitions along each dim, and sums over them."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_over


def sum_of_tiles(X: ShapeOnly, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD summed over the repetitions; of X only the shape is read."""
    # Out's dim i is (repetitions, dim of X)
    full = (1,) * (Out_grad.ndim - X.ndim) + X.shape
    pairs = [n for d, o in zip(full, Out_grad.shape, strict=True) for n in (o // d if d else 1, d)]
    return sum_over(Out_grad.reshape(pairs), tuple(range(0, len(pairs), 2)), xp).reshape(X.shape)
