"""Kernel of density_prior_box."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.anchor._by_shapes import by_shapes
from oprack_detection.kernels.anchor.prior_box import centers


def _spread(
    fixed_sizes: Sequence[float], fixed_ratios: Sequence[float], densities: Sequence[int], step: int
) -> tuple[Array, Array]:
    """Centres relative to the cell's, and half sizes, each [priors, 2]."""
    shifts, halves = [], []
    for size, density in zip(fixed_sizes, densities, strict=True):
        distance = step // density
        at = -step / 2.0 + distance / 2.0 + np.arange(density) * distance
        grid = np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)  # x runs fastest
        for ratio in fixed_ratios:
            shifts.append(grid)
            half = [size * math.sqrt(ratio) / 2.0, size / math.sqrt(ratio) / 2.0]
            halves.append(np.broadcast_to(half, grid.shape))
    if not shifts:
        return np.empty((0, 2)), np.empty((0, 2))
    return np.concatenate(shifts), np.concatenate(halves)


def _density_prior_box(
    Input: Array,
    Image: Array,
    *,
    variances: list[float],
    clip: bool,
    flatten_to_2d: bool,
    step_w: float,
    step_h: float,
    offset: float,
    fixed_sizes: list[float],
    fixed_ratios: list[float],
    densities: list[int],
    xp: ArrayModule,
) -> tuple[Array, Array]:
    image = Image.shape[2:]
    center, step_w, step_h = centers(Input.shape[2:], image, step_w, step_h, offset)
    shift, half = _spread(fixed_sizes, fixed_ratios, densities, int((step_w + step_h) * 0.5))
    center = center + shift
    size = np.array([image[1], image[0]])
    # each corner is held inside the image on its own side even without clip, as in Paddle
    boxes = np.concatenate([np.maximum((center - half) / size, 0.0), np.minimum((center + half) / size, 1.0)], axis=-1)
    if clip:
        boxes = np.clip(boxes, 0.0, 1.0)
    boxes = boxes.astype(Input.dtype)
    if flatten_to_2d:
        boxes = boxes.reshape(-1, 4)
    return xp.asarray(boxes), xp.asarray(np.broadcast_to(np.array(variances, Input.dtype), boxes.shape).copy())


density_prior_box = kernel(
    "density_prior_box", place=("cpu", "cuda"), dtypes=FLOATS, specialize=by_shapes(_density_prior_box)
)(_density_prior_box)
