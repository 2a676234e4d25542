"""Kernels of affine_grid and its gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _line(size: int, align_corners: bool) -> np.ndarray:
    """Places of the pixels of one dim in [-1, 1]."""
    if align_corners:
        return np.linspace(-1, 1, size) if size > 1 else np.zeros(size)
    return (2 * np.arange(size) + 1) / max(size, 1) - 1


def _points(sizes: tuple[int, ...], align_corners: bool, dtype: np.dtype[Any], xp: ArrayModule) -> Array:
    """(x, y, 1) or (x, y, z, 1) of every pixel, [pixels, rank + 1]."""
    axes = np.meshgrid(*(_line(s, align_corners) for s in sizes), indexing="ij")
    table = np.stack([*(a.reshape(-1) for a in axes[::-1]), np.ones(math.prod(sizes))], axis=1)
    return constant(table.astype(dtype), xp)


@kernel("affine_grid", place=_PLACES, dtypes=FLOATS)
def affine_grid(
    Theta: Array,
    OutputShape: Array | None = None,
    *,
    output_shape: list[int],
    align_corners: bool,
    xp: ArrayModule,
) -> Array:
    sizes = tuple(int(s) for s in (output_shape if OutputShape is None else OutputShape.tolist())[2:])
    points = _points(sizes, align_corners, Theta.dtype, xp)
    return xp.matmul(points, Theta.transpose(0, 2, 1)).reshape(len(Theta), *sizes, Theta.shape[1])


@kernel("affine_grid_grad", place=_PLACES, dtypes=FLOATS)
def affine_grid_grad(
    Theta: ShapeOnly,
    Output_grad: Array,
    OutputShape: Array | None = None,
    *,
    align_corners: bool,
    xp: ArrayModule,
) -> Array:
    n, *sizes, rank = Output_grad.shape
    points = _points(tuple(sizes), align_corners, Output_grad.dtype, xp)
    return xp.matmul(Output_grad.reshape(n, math.prod(sizes), rank).transpose(0, 2, 1), points)
