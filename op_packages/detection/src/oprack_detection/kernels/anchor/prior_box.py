"""Kernel of prior_box."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.anchor._by_shapes import by_shapes
from oprack_detection.ops.anchor.prior_box import expanded_ratios


def _halves(
    min_sizes: Sequence[float], max_sizes: Sequence[float], ratios: Sequence[float], min_max_order: bool
) -> Array:
    """Half widths and heights [priors, 2] in pixels, in the order of the output."""
    found = []
    for i, m in enumerate(min_sizes):
        square = [math.sqrt(m * max_sizes[i]) / 2.0] * 2 if max_sizes else None
        if min_max_order:
            found.append([m / 2.0] * 2)
            if square:
                found.append(square)
            found += [[m * math.sqrt(r) / 2.0, m / math.sqrt(r) / 2.0] for r in ratios if abs(r - 1.0) >= 1e-6]
        else:
            found += [[m * math.sqrt(r) / 2.0, m / math.sqrt(r) / 2.0] for r in ratios]
            if square:
                found.append(square)
    return np.array(found)


def centers(
    shape: tuple[int, ...], image: tuple[int, int], step_w: float, step_h: float, offset: float
) -> tuple[Array, float, float]:
    """Centres [H, W, 1, 2] of the cells in pixels, and the steps in effect."""
    (h, w), (image_h, image_w) = shape, image
    if step_w == 0 or step_h == 0:
        step_w, step_h = image_w / w, image_h / h
    grid = np.empty((h, w, 1, 2))
    grid[..., 0] = ((np.arange(w) + offset) * step_w)[None, :, None]
    grid[..., 1] = ((np.arange(h) + offset) * step_h)[:, None, None]
    return grid, step_w, step_h


def _prior_box(
    Input: Array,
    Image: Array,
    *,
    min_sizes: list[float],
    max_sizes: list[float],
    aspect_ratios: list[float],
    variances: list[float],
    flip: bool,
    clip: bool,
    step_w: float,
    step_h: float,
    offset: float,
    min_max_aspect_ratios_order: bool,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """From shapes and attributes alone, so on the host at any place."""
    image = Image.shape[2:]
    half = _halves(min_sizes, max_sizes, expanded_ratios(aspect_ratios, flip), min_max_aspect_ratios_order)
    center, _, _ = centers(Input.shape[2:], image, step_w, step_h, offset)
    boxes = np.concatenate([center - half, center + half], axis=-1) / np.array([image[1], image[0]] * 2)
    if clip:
        boxes = np.clip(boxes, 0.0, 1.0)
    boxes = boxes.astype(Input.dtype)
    return xp.asarray(boxes), xp.asarray(np.broadcast_to(np.array(variances, Input.dtype), boxes.shape).copy())


prior_box = kernel("prior_box", place=("cpu", "cuda"), dtypes=FLOATS, specialize=by_shapes(_prior_box))(_prior_box)
