"""Kernel of box_coder."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


def _centers(boxes: Array, pixel: float) -> tuple[Array, Array]:
    """Centres and sizes [..., 2] of boxes, as Paddle computes them for priors."""
    size = boxes[..., 2:] - boxes[..., :2] + pixel
    return boxes[..., :2] + size * boxes.dtype.type(0.5), size


@kernel("box_coder", place=("cpu", "cuda"), dtypes=FLOATS)
def box_coder(
    PriorBox: Array,
    TargetBox: Array,
    PriorBoxVar: Array | None = None,
    *,
    code_type: str,
    box_normalized: bool,
    axis: int,
    variance: list[float],
    xp: ArrayModule,
) -> Array:
    kind = PriorBox.dtype.type
    pixel = kind(0 if box_normalized else 1)
    center, size = _centers(PriorBox, pixel)
    if PriorBoxVar is None:
        factor = constant(np.array(variance or [1.0] * 4, PriorBox.dtype), xp)
    else:
        factor = PriorBoxVar
    if code_type == "encode_center_size":
        box = TargetBox[:, None]
        # the centre of a target is the middle of its corners even where boxes are in pixels
        shift = ((box[..., :2] + box[..., 2:]) * kind(0.5) - center) / size
        stretch = xp.log(abs((box[..., 2:] - box[..., :2] + pixel) / size))
        return xp.concatenate([shift, stretch], axis=-1) / factor
    if axis == 1:
        center, size = center[:, None], size[:, None]
        factor = factor[:, None] if factor.ndim == 2 else factor
    code = TargetBox * factor
    middle = code[..., :2] * size + center
    half = xp.exp(code[..., 2:]) * size * kind(0.5)
    return xp.concatenate([middle - half, middle + half - pixel], axis=-1)
