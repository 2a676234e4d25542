"""Kernel of generate_mask_labels."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.match._polygons import Outlines, rasters
from oprack_detection.kernels.match._sampling import closest, images_of, joined


def _objects(ctx: KernelContext, corners: Array, images: int) -> tuple[Outlines, Array]:
    """All polygons, and where the objects of each image begin."""
    lod = [np.asarray(level, np.int64) for level in ctx.lod("GtSegms")]
    if len(lod) != 3 or len(lod[0]) != images + 1:
        raise InvalidLoDError(
            f"op {ctx.op_type}: GtSegms has {len(lod)} LoD levels with {len(lod[0]) - 1 if lod else 0} sequences; "
            f"expected three levels: the objects of each of {images} images, the polygons of each object, and the "
            "corners of each polygon"
        )
    if not np.isfinite(corners).all():
        raise InvalidArgumentError(f"op {ctx.op_type}: GtSegms holds infinities or NaN; expected corners in pixels")
    return Outlines(corners, lod[2], lod[1]), lod[0]


def _learned(classes: Array, crowds: Array, first: int) -> Array:
    """The objects of an image that regions may learn."""
    return first + np.flatnonzero((classes.reshape(-1) > 0) & (crowds.reshape(-1) == 0))


@kernel("generate_mask_labels", dtypes=FLOATS)
def generate_mask_labels(
    ImInfo: Array,
    GtClasses: Array,
    IsCrowd: Array,
    GtSegms: Array,
    Rois: Array,
    LabelsInt32: Array,
    *,
    num_classes: int,
    resolution: int,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    """Image by image; all masks of an image at once."""
    outlines, begins = _objects(ctx, GtSegms, len(ImInfo))
    slots = images_of(ctx.op_type, ctx, ("GtClasses", "IsCrowd", "Rois", "LabelsInt32"), len(ImInfo))
    found = []
    for i, (scale, classes, crowd, roi, label) in enumerate(zip(ImInfo[:, 2], *slots, strict=True)):
        rois, labels = Rois[slice(*roi)] / scale, LabelsInt32[slice(*label)].reshape(-1)
        rows = np.flatnonzero(labels > 0)
        masks = np.full((max(len(rows), min(len(rois), 1)), num_classes, resolution * resolution), -1, np.int32)
        if len(rows):
            objects = _learned(GtClasses[slice(*classes)], IsCrowd[slice(*crowd)], begins[i])
            if not len(objects) or labels.max() >= num_classes:
                raise InvalidArgumentError(
                    f"op {ctx.op_type}: image {i} has {len(rows)} regions of classes up to {labels.max()} and "
                    f"{len(objects)} objects that are no crowds; expected classes below {num_classes} and an object"
                )
            _, _, which = closest(rois[rows], outlines.boxes(objects))
            masks[np.arange(len(rows)), labels[rows]] = rasters(outlines, objects[which], rois[rows], resolution)
        else:
            rows = np.flatnonzero(labels == 0)[: len(masks)]
            masks = masks[: len(rows)]
        found.append((rois[rows] * scale, rows.astype(np.int32)[:, None], masks.reshape(len(rows), -1)))
    return tuple(joined(parts) for parts in zip(*found, strict=True))
