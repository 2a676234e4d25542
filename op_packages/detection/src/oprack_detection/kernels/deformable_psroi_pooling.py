"""Kernels of deformable_psroi_pooling and of its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS

from oprack_detection.kernels._regions import image_of_region

_CHUNK = 1 << 21  # samples at once: bounds the memory that many regions take


class _Samples(NamedTuple):
    """Samples of some regions [R, channels, bins, bins, S, S]: what they read of the map, and how they move."""

    regions: slice
    plane: Array  # place of the first pixel of its channel in the flat map
    corners: list[tuple[Array, Array, Array, Array]]  # (place in the channel, weight, slope along y, along x)
    inside: Array
    size: Array  # [R, 2], height and width of each region


def _rounded(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _samples(shape: tuple[int, ...], rois: Array, trans: Array, image: Array, attrs: Any) -> Iterator[_Samples]:
    bins, spp = (attrs["pooled_height"], attrs["pooled_width"]), attrs["sample_per_part"]
    channels, group, part, kind = attrs["output_dim"], attrs["group_size"], attrs["part_size"], rois.dtype.type
    start = _rounded(rois[:, 1::-1]) * kind(attrs["spatial_scale"]) - kind(0.5)
    end = (_rounded(rois[:, 3:1:-1]) + 1) * kind(attrs["spatial_scale"]) - kind(0.5)
    size = np.maximum(end - start, kind(0.1))
    classes = 1 if attrs["no_trans"] else trans.shape[1] // 2
    of_class = np.arange(channels) // (channels // classes)
    grid = np.ix_(*(np.arange(b) * p // b for b, p in zip(bins, part, strict=True)))
    groups = [np.clip(np.arange(b) * g // b, 0, g - 1) for b, g in zip(bins, group, strict=True)]
    channel = (np.arange(channels)[:, None, None] * group[0] + groups[0][:, None]) * group[1] + groups[1]
    step = max(1, _CHUNK // max(channels * bins[0] * bins[1] * spp * spp, 1))
    for i in range(0, len(rois), step):
        at = slice(i, i + step)
        count, places = len(rois[at]), []
        for axis in (0, 1):  # y, then x
            width = (size[at, axis] / bins[axis])[:, None, None]
            here = start[at, axis, None, None] + (np.arange(bins[axis])[:, None] + np.arange(spp) / spp) * width
            here = here.reshape(
                count,
                1,
                *(bins[0] if axis == 0 else 1, bins[1] if axis == 1 else 1),
                *((spp, 1) if axis == 0 else (1, spp)),
            )
            if not attrs["no_trans"]:
                moved = trans[at].reshape(count, classes, 2, *part)[:, of_class, 1 - axis][:, :, grid[0], grid[1]]
                here = here + (moved * kind(attrs["trans_std"]) * size[at, axis, None, None, None])[..., None, None]
            places.append(here)
        yield _read(shape, at, places, channel, image[at], size[at])


def _read(
    shape: tuple[int, ...], at: slice, places: list[Array], channel: Array, image: Array, size: Array
) -> _Samples:
    height, width = shape[2:]
    y, x = np.broadcast_arrays(*places)
    inside = (y >= -0.5) & (y <= height - 0.5) & (x >= -0.5) & (x <= width - 0.5)
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    low, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    high, right = np.ceil(y).astype(np.int64), np.ceil(x).astype(np.int64)
    dy, dx = y - low, x - left
    corners = [
        (low * width + left, (1 - dy) * (1 - dx), dx - 1, dy - 1),
        (low * width + right, (1 - dy) * dx, -dx, 1 - dy),
        (high * width + left, dy * (1 - dx), 1 - dx, -dy),
        (high * width + right, dy * dx, dx, dy),
    ]
    plane = (image[:, None, None, None] * shape[1] + channel) * (height * width)
    return _Samples(at, plane[..., None, None], corners, inside, size)


@kernel("deformable_psroi_pooling", dtypes=FLOATS)
def deformable_psroi_pooling(Input: Array, ROIs: Array, Trans: Array, *, ctx: KernelContext) -> tuple[Array, Array]:
    """A gather of the four pixels around each sample."""
    attrs = ctx.attrs
    shape = (len(ROIs), attrs["output_dim"], attrs["pooled_height"], attrs["pooled_width"])
    count, out = np.zeros(shape, Input.dtype), np.zeros(shape, Input.dtype)
    flat, image = Input.reshape(-1), image_of_region(ROIs, None, ctx.lod("ROIs"), len(Input), ctx.op_type)
    for found in _samples(Input.shape, ROIs, Trans, image, attrs):
        inside = np.broadcast_to(found.inside, (*found.plane.shape[:4], *found.inside.shape[4:]))
        total = sum(flat[found.plane + place] * weight for place, weight, _, _ in found.corners)
        count[found.regions] = inside.sum(axis=(4, 5))
        out[found.regions] = (total * inside).sum(axis=(4, 5)) / np.maximum(count[found.regions], 1)
    return count, out


@kernel("deformable_psroi_pooling_grad", dtypes=FLOATS)
def deformable_psroi_pooling_grad(
    Input: Array, ROIs: Array, Trans: Array, TopCount: Array, Output_grad: Array, *, ctx: KernelContext
) -> dict[str, Array]:
    """Sums over the pixels, and over the channels of a class for its shifts."""
    attrs, flat = ctx.attrs, Input.reshape(-1)
    dx, dtrans = np.zeros_like(flat), np.zeros_like(Trans)
    bins, part = (attrs["pooled_height"], attrs["pooled_width"]), attrs["part_size"]
    grid = np.ix_(*(np.arange(b) * p // b for b, p in zip(bins, part, strict=True)))
    image = image_of_region(ROIs, None, ctx.lod("ROIs"), len(Input), ctx.op_type)
    for found in _samples(Input.shape, ROIs, Trans, image, attrs):
        share = (Output_grad[found.regions] / np.maximum(TopCount[found.regions], 1))[..., None, None] * found.inside
        slopes = [np.zeros_like(share), np.zeros_like(share)]
        for place, weight, along_y, along_x in found.corners:
            np.add.at(dx, np.broadcast_to(found.plane + place, share.shape), share * weight)
            value = flat[found.plane + place]
            slopes[1] += value * along_y
            slopes[0] += value * along_x
        if not attrs["no_trans"]:
            count, classes = len(share), Trans.shape[1] // 2
            into = dtrans[found.regions].reshape(count, classes, 2, *part)
            for axis in (0, 1):  # x, then y
                moved = (share * slopes[axis]).sum(axis=(4, 5)).reshape(count, classes, -1, *bins).sum(axis=2)
                moved *= attrs["trans_std"] * found.size[:, 1 - axis, None, None, None]
                np.add.at(into[:, :, axis], (slice(None), slice(None), *grid), moved)
    return {"Input_grad": dx.reshape(Input.shape), "Trans_grad": dtrans}
