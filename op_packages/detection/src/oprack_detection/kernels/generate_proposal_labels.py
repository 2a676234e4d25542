"""Kernel of generate_proposal_labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels.match import Sample, closest, codes, images_of, joined, sampler


class LabelOptions(NamedTuple):
    """The attributes, as one parameter of the kernel."""

    batch_size_per_im: int
    fg_fraction: float
    fg_thresh: float
    bg_thresh_hi: float
    bg_thresh_lo: float
    bbox_reg_weights: list[float]
    class_nums: int
    use_random: bool
    is_cascade_rcnn: bool
    is_cls_agnostic: bool


def _later_stage(rois: Array, overlap: Array | None) -> Array:
    """The proposals that a later stage learns from; one empty region where none is left."""
    kept = (rois[:, 2:] - rois[:, :2] + 1 > 0).all(axis=1)
    if overlap is not None:
        kept &= overlap < 1
    return rois[kept] if kept.any() else np.zeros((1, 4), rois.dtype)


def _chosen(most: Array, options: LabelOptions, sample: Sample) -> tuple[Array, Array]:
    """Regions of the foreground and of the background."""
    foreground = np.flatnonzero(most >= options.fg_thresh)
    below = (most >= options.bg_thresh_lo) & (most < options.bg_thresh_hi) & (most < options.fg_thresh)
    background = np.flatnonzero(below)
    if options.is_cascade_rcnn:
        return foreground, background
    foreground = sample(foreground, int(np.float32(options.fg_fraction) * np.float32(options.batch_size_per_im)))
    return foreground, sample(background, options.batch_size_per_im - len(foreground))


def _tables(target: Array, labels: Array, options: LabelOptions) -> tuple[Array, Array]:
    """Codes at the place of their class, and 1 where there is one."""
    table = np.zeros((len(labels), options.class_nums, 4), target.dtype)
    weight = np.zeros_like(table)
    rows = np.flatnonzero(labels > 0)
    place = np.ones(len(rows), np.int64) if options.is_cls_agnostic else labels[rows]
    table[rows, place] = target[rows]
    weight[rows, place] = 1
    return table.reshape(len(labels), -1), weight.reshape(len(labels), -1)


@kernel("generate_proposal_labels", dtypes=FLOATS)
def generate_proposal_labels(
    RpnRois: Array,
    GtClasses: Array,
    IsCrowd: Array,
    GtBoxes: Array,
    ImInfo: Array,
    MaxOverlap: Array | None = None,
    *,
    options: LabelOptions,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    sample = sampler(ctx, options.use_random)
    weights = np.array(options.bbox_reg_weights, RpnRois.dtype)
    images = images_of(ctx.op_type, ctx, ("RpnRois", "GtClasses", "IsCrowd", "GtBoxes"), len(ImInfo))
    found = []
    for scale, roi, label, crowd, box in zip(ImInfo[:, 2], *images, strict=True):
        gt, rois = GtBoxes[slice(*box)], RpnRois[slice(*roi)] / scale
        if options.is_cascade_rcnn:
            rois = _later_stage(rois, None if MaxOverlap is None else MaxOverlap[slice(*roi)].reshape(-1))
        regions = np.concatenate([gt, rois])
        _, most, which = closest(regions, gt)
        most[: len(gt)][IsCrowd[slice(*crowd)].reshape(-1) != 0] = -1
        foreground, background = _chosen(most, options, sample)
        index = np.concatenate([foreground, background])
        classes = np.zeros(len(index), np.int64)
        classes[: len(foreground)] = GtClasses[slice(*label)].reshape(-1)[which[foreground]]
        target = np.zeros((len(index), 4), RpnRois.dtype)
        target[: len(foreground)] = codes(regions[foreground], gt[which[foreground]]) / weights
        table, weight = _tables(target, classes, options)
        rows = regions[index] * scale, classes.astype(np.int32)[:, None], table, weight, weight, most[index]
        found.append(rows)
    return tuple(joined(parts) for parts in zip(*found, strict=True))
