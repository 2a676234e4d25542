"""Kernel of anchor_generator."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.anchor._by_shapes import by_shapes


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
