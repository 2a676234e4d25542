"""Kernels of anchors and prior boxes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel
from oprack.kernel.specialization import Specialize
from oprack.types import FLOATS

from oprack_detection.ops.anchor import expanded_ratios

# by shapes ------------------------------------------------------------------------------------------------------------
# Anchors follow from shapes and attributes: a plan computes them once for each.
# Shapes come with the data.
_SHAPES = 1024


def by_shapes(function: Callable[..., tuple[Array, ...]]) -> Specialize:
    """`specialize` of a kernel that reads the shapes of its inputs alone, and the dtype of the first one."""

    def specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
        if call.xp is not np:
            return None
        wanted = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        compute = partial(function, **{n: call.attrs[n] for n in wanted if n != "xp"}, xp=np)
        known = Cache(_SHAPES, "anchors")

        def run(Input: Array, *others: Array) -> tuple[Array, ...]:
            key = (Input.dtype, Input.shape, *(x.shape for x in others))
            found: tuple[Array, ...] | None = known[key]
            if found is None:
                found = compute(Input, *others)
                known.keep(key, found, sum(array.nbytes for array in found))
            # copies: who reads them last may write to them
            return tuple([array.copy() for array in found])

        return run

    return specialize


# anchor_generator -----------------------------------------------------------------------------------------------------
def _anchor_generator(
    Input: Array,
    *,
    anchor_sizes: list[float],
    aspect_ratios: list[float],
    variances: list[float],
    stride: list[float],
    offset: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    h, w = Input.shape[2:]
    step = np.array(stride)
    ratios = np.array(aspect_ratios)[:, None]
    # base boxes have whole pixels; sizes then scale them
    base_w = np.floor(np.sqrt(stride[0] * stride[1] / ratios) + 0.5)
    base_h = np.floor(base_w * ratios + 0.5)
    scale = np.array(anchor_sizes)[None, :, None] / step
    size = (scale * np.stack([base_w, base_h], axis=-1)).reshape(-1, 2)
    center = np.stack(np.meshgrid(np.arange(w), np.arange(h)), axis=-1)[:, :, None] * step + offset * (step - 1)
    half = 0.5 * (size - 1)
    anchors = np.concatenate([center - half, center + half], axis=-1).astype(Input.dtype)
    return xp.asarray(anchors), xp.asarray(np.broadcast_to(np.array(variances, Input.dtype), anchors.shape).copy())


anchor_generator = kernel(
    "anchor_generator", place=("cpu", "cuda"), dtypes=FLOATS, specialize=by_shapes(_anchor_generator)
)(_anchor_generator)


# prior_box ------------------------------------------------------------------------------------------------------------
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


# density_prior_box ----------------------------------------------------------------------------------------------------
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
