"""Kernels of boxes: coding, clipping, overlap."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


# box_clip -------------------------------------------------------------------------------------------------------------
@kernel("box_clip", dtypes=FLOATS)
def box_clip(Input: Array, ImInfo: Array, *, ctx: KernelContext) -> Array:
    lod = ctx.lod("Input")
    if len(lod) != 1 or len(lod[0]) - 1 != len(ImInfo):
        raise InvalidArgumentError(
            f"op box_clip: Input has LoD {lod} and ImInfo {len(ImInfo)} rows; expected one LoD level with a "
            "sequence of boxes per image"
        )
    size = np.rint(ImInfo[:, 1::-1] / ImInfo[:, 2:])  # width, height
    last = np.repeat(size - 1, np.diff(lod[0]), axis=0)
    last = np.tile(last, 2).reshape(len(Input), *([1] * (Input.ndim - 2)), 4).astype(Input.dtype)
    return np.maximum(np.minimum(Input, last), Input.dtype.type(0))


# box_coder ------------------------------------------------------------------------------------------------------------
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


# box_decoder_and_assign -----------------------------------------------------------------------------------------------
@kernel("box_decoder_and_assign", place=("cpu", "cuda"), dtypes=FLOATS)
def box_decoder_and_assign(
    PriorBox: Array,
    TargetBox: Array,
    BoxScore: Array,
    PriorBoxVar: Array | None = None,
    *,
    box_clip: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    kind, (rows, classes) = PriorBox.dtype.type, BoxScore.shape
    size = PriorBox[:, None, 2:] - PriorBox[:, None, :2] + kind(1)
    center = PriorBox[:, None, :2] + size * kind(0.5)
    codes = TargetBox.reshape(rows, classes, 4)
    codes = codes if PriorBoxVar is None else codes * PriorBoxVar
    middle = codes[..., :2] * size + center
    half = xp.exp(xp.minimum(codes[..., 2:], kind(box_clip))) * size * kind(0.5)
    boxes = xp.concatenate([middle - half, middle + half - kind(1)], axis=2)
    if classes < 2:
        return boxes.reshape(TargetBox.shape), PriorBox.copy()
    best = BoxScore[:, 1:].argmax(axis=1)
    found = BoxScore[xp.arange(rows), best + 1] > -1
    assigned = xp.where(found[:, None], boxes[xp.arange(rows), best + 1], PriorBox)
    return boxes.reshape(TargetBox.shape), assigned


# iou_similarity -------------------------------------------------------------------------------------------------------
def _sides(boxes: Array, pixel: float) -> Array:
    return boxes[..., 2:] - boxes[..., :2] + pixel


@kernel("iou_similarity", place=("cpu", "cuda"), dtypes=FLOATS)
def iou_similarity(X: Array, Y: Array, *, box_normalized: bool, xp: ArrayModule) -> Array:
    a, b, pixel = X[:, None], Y[None], X.dtype.type(0 if box_normalized else 1)
    low, high = xp.maximum(a[..., :2], b[..., :2]), xp.minimum(a[..., 2:], b[..., 2:])
    # in pixels, boxes whose borders are next to each other share some: the offset comes before the comparison with 0
    inside = xp.maximum(high - low + pixel, pixel * 0).prod(axis=-1)
    union = _sides(a, pixel).prod(axis=-1) + _sides(b, pixel).prod(axis=-1) - inside
    return xp.where(inside > 0, inside / xp.where(inside > 0, union, 1), inside)


# polygon_box_transform ------------------------------------------------------------------------------------------------
@kernel("polygon_box_transform", place=("cpu", "cuda"), dtypes=FLOATS)
def polygon_box_transform(Input: Array, *, xp: ArrayModule) -> Array:
    height, width = Input.shape[2:]
    out = -Input
    out[:, ::2] += xp.arange(width, dtype=Input.dtype) * 4
    out[:, 1::2] += xp.arange(height, dtype=Input.dtype)[:, None] * 4
    return out
