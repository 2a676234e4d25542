"""Kernels of ops that match boxes with ground truth and choose what a detector learns from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS, INTEGERS

from oprack_detection.kernels._boxes import overlaps

# sampling -------------------------------------------------------------------------------------------------------------
# What rpn_target_assign, retinanet_target_assign and generate_proposal_labels share: overlaps, samples, codes.
Sample = Callable[[Array, int], Array]

_NEAR = 1e-5  # overlaps of less difference count as equal


def sampler(ctx: KernelContext, use_random: bool) -> Sample:
    """A function (candidates, count) -> at most `count` of them, in their order: drawn, or the first."""
    if not use_random:
        return lambda candidates, count: candidates[: max(count, 0)]
    random = ctx.generator()

    def draw(candidates: Array, count: int) -> Array:
        if len(candidates) <= count:
            return candidates
        return np.sort(random.choice(candidates, max(count, 0), replace=False))

    return draw


def codes(boxes: Array, targets: Array) -> Array:
    """Targets [K, 4] relative to boxes [K, 4], both in pixels."""
    kind = boxes.dtype.type
    size, wanted = (b[:, 2:] - b[:, :2] + kind(1) for b in (boxes, targets))
    shift = (targets[:, :2] + kind(0.5) * wanted) - (boxes[:, :2] + kind(0.5) * size)
    return np.concatenate([shift / size, np.log(wanted / size)], axis=1)


def closest(boxes: Array, gt: Array) -> tuple[Array, Array, Array]:
    """(overlaps [K, G], the greatest of each box, where it is); 0 and 0 without ground truth."""
    near = overlaps(boxes[:, None], gt[None], 1, np)
    if not len(gt):
        return near, np.zeros(len(boxes), boxes.dtype), np.zeros(len(boxes), np.int64)
    return near, near.max(axis=1), near.argmax(axis=1)


def images_of(op_type: str, ctx: KernelContext, slots: Sequence[str], images: int) -> list[list[tuple[int, int]]]:
    """(begin, end) of the rows of each image, for each slot. Raises InvalidArgumentError when the counts differ."""
    ranges = []
    for slot in slots:
        lod = ctx.lod(slot)
        if not lod or len(lod[-1]) != images + 1:
            raise InvalidArgumentError(
                f"op {op_type}: {slot} has LoD {lod}; expected one level with a sequence for each of {images} images, "
                "the rows of ImInfo"
            )
        ranges.append(list(pairwise(lod[-1])))
    return ranges


def joined(parts: Sequence[Array]) -> LoDTensor:
    """The arrays of the images one after another, with their lengths as LoD."""
    return LoDTensor(np.concatenate(parts), [[0, *np.cumsum([len(p) for p in parts]).tolist()]])


def learners(
    near: Array, most: Array, positive: float, negative: float, size: int, fraction: float, sample: Sample
) -> tuple[Array, Array, Array, Array]:
    """What anchors learn by their overlaps with the boxes of an image.

    Args:
        near: Overlaps [A, G].
        most: The greatest of each anchor.
        positive: Overlap from which on an anchor is positive.
        negative: Overlap below which it is negative.
        size: How many learn; not positive: all.
        fraction: How many of these at most are positive.
        sample: Takes some of a list.

    Returns:
        Anchors that learn a box, 1 where theirs counts, positive anchors, negative anchors.
    """
    best = np.abs(near - near.max(axis=0, initial=0)) < _NEAR
    chosen = np.flatnonzero(best.any(axis=1) | (most >= positive)) if near.shape[1] else np.empty(0, np.int64)
    limited = size > 0 and fraction > 0
    if limited:
        chosen = sample(chosen, int(np.float32(fraction) * np.float32(size)))
    background = np.flatnonzero(most < negative)
    if limited:
        background = sample(background, size - len(chosen))
    # the best anchor of a box may overlap it by less than `negative`: it is background, and stays in the list of
    # those that learn a box as a repetition of the first one that does not count
    both = np.isin(chosen, background)
    kept = chosen[~both]
    location = np.concatenate([np.repeat(chosen[:1], both.sum()), kept])
    counts = np.concatenate([np.zeros(int(both.sum())), np.ones(len(kept))])
    return location, counts, kept, background


# anchors --------------------------------------------------------------------------------------------------------------
# What rpn_target_assign and retinanet_target_assign share: the targets of all images.
def _inside(anchors: Array, info: Array, straddle: float) -> Array:
    """Indices of the anchors that lie at most `straddle` pixels outside of an image."""
    if straddle < 0:
        return np.arange(len(anchors))
    height, width = info[0], info[1]
    low = (anchors[:, :2] >= -straddle).all(axis=1)
    return np.flatnonzero(low & (anchors[:, 2] < width + straddle) & (anchors[:, 3] < height + straddle))


def anchor_targets(
    anchors: Array,
    gt_boxes: Array,
    labels: Array | None,
    crowd: Array,
    info: Array,
    overlap: tuple[float, float],
    sampling: tuple[int, float, Sample],
    straddle: float,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    """LocationIndex, ScoreIndex, TargetBBox, TargetLabel, BBoxInsideWeight and ForegroundNumber."""
    found = []
    boxes_of, crowd_of = images_of(ctx.op_type, ctx, ("GtBoxes", "IsCrowd"), len(info))
    size, fraction, sample = sampling
    for i, ((a, b), (c, d)) in enumerate(zip(boxes_of, crowd_of, strict=True)):
        index = _inside(anchors, info[i], straddle)
        single = crowd[c:d].reshape(-1) == 0
        gt = gt_boxes[a:b][single] * info[i, 2]
        near, most, which = closest(anchors[index], gt)
        location, counts, positive, negative = learners(near, most, *overlap, size, fraction, sample)
        if labels is None:
            positive_labels = np.ones(len(positive), np.int64)
        else:
            positive_labels = labels[a:b].reshape(-1)[single][which[positive]]
        offset = i * len(anchors)
        found.append(
            (
                (index[location] + offset).astype(np.int32),
                (index[np.concatenate([positive, negative])] + offset).astype(np.int32),
                codes(anchors[index[location]], gt[which[location]]).astype(gt_boxes.dtype),
                np.concatenate([positive_labels, np.zeros(len(negative))]).astype(np.int32)[:, None],
                np.repeat(counts[:, None], 4, axis=1).astype(gt_boxes.dtype),
                np.array([[len(location) + 1]], np.int32),
            )
        )
    return tuple(joined(parts) for parts in zip(*found, strict=True))


# polygons -------------------------------------------------------------------------------------------------------------
# Outlines of objects as polygons, and the pixels within them.
_FINE = 5  # an outline is rounded to a fifth of a pixel before its pixels are decided

_FAR = 1e8  # corners beyond so many pixels are as good as this far away

_TRIES = 4  # steps around an estimate among which the exact one is


class Outlines(NamedTuple):
    """Polygons of objects: their corners [S, 2], where each polygon's begin, and where each object's polygons do."""

    corners: Array
    polygons: Array
    objects: Array

    def boxes(self, objects: Array) -> Array:
        """[len(objects), 4]: the box around each; one that overlaps nothing around an object without a corner."""
        found = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf], self.corners.dtype), (len(objects), 1))
        for row, i in enumerate(objects):
            corners = self.corners[self.polygons[self.objects[i]] : self.polygons[self.objects[i + 1]]]
            if len(corners):
                found[row] = *corners.min(axis=0), *corners.max(axis=0)
        return found


def _ranges(begins: Array, ends: Array) -> tuple[Array, Array]:
    """The numbers of ranges side by side, and which range each is of."""
    counts = ends - begins
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.arange(len(owner)) + (begins - (np.cumsum(counts) - counts))[owner], owner


def rasters(outlines: Outlines, objects: Array, rois: Array, size: int) -> Array:
    """Which pixels of regions lie in a polygon of their objects.

    Args:
        outlines: Polygons.
        objects: The object of each region.
        rois: Regions [R, 4] in the pixels of the polygons.
        size: Pixels of a region each way.

    Returns:
        [R, size * size], bool.
    """
    polygons, region = _ranges(outlines.objects[objects], outlines.objects[objects + 1])
    corner, polygon = _ranges(outlines.polygons[polygons], outlines.polygons[polygons + 1])
    of = region[polygon]
    extent = np.maximum(rois[:, 2:] - rois[:, :2], rois.dtype.type(1))
    places = (outlines.corners[corner] - rois[of, :2]) * rois.dtype.type(size) / extent[of]
    fine = np.floor(np.clip(places.astype(np.float64), -_FAR, _FAR) * _FINE + 0.5).astype(np.int64)
    last = np.append(polygon[1:] != polygon[:-1], True)[: len(polygon)]
    first = np.searchsorted(polygon, polygon)  # where the polygon of each corner begins
    after = np.where(last, first, np.arange(len(polygon)) + 1)
    column, row, edge = _crossings(fine, fine[after], size)
    return _filled(polygon[edge], column * size + row, region, len(objects), size)


def _crossings(start: Array, end: Array, size: int) -> tuple[Array, Array, Array]:
    """Where edges cross the middles of columns of pixels: column, the row from which on pixels are beyond, edge."""
    wide = np.abs(end[:, 0] - start[:, 0]) >= np.abs(end[:, 1] - start[:, 1])
    turned = np.where(wide, start[:, 0] > end[:, 0], start[:, 1] > end[:, 1])[:, None]
    begin, stop = np.where(turned, end, start), np.where(turned, start, end)
    left = _FINE * np.arange(size) + _FINE // 2  # an edge crosses between this fine column and the next
    low, high = np.minimum(begin[:, 0], stop[:, 0]), np.maximum(begin[:, 0], stop[:, 0])
    edge, column = np.nonzero((low[:, None] <= left) & (high[:, None] > left))
    (x, y), (dx, dy) = begin[edge].T, (stop - begin)[edge].T
    flat = wide[edge]
    slope = np.where(flat, dy, dx) / np.maximum(np.where(flat, dx, dy), 1)
    along = left[column] - x
    rows = np.minimum(*(np.trunc(y + slope * (along + k) + 0.5) for k in (0, 1)))
    rows = np.where(flat, rows, y + _steps_before(x, slope, left[column], flat))
    above = np.clip((rows + 0.5) / _FINE - 0.5, 0, size)
    return column, np.ceil(above).astype(np.int64), edge


def _steps_before(x: Array, slope: Array, left: Array, flat: Array) -> Array:
    """Of steep edges: the steps down after which the next one enters or leaves the fine column `left`."""
    steep = np.where(flat, 1.0, slope)
    guess = np.floor((left + 0.5 - x) / steep) - 1
    steps = guess + _TRIES
    for k in reversed(range(_TRIES)):
        at = np.trunc(x + steep * (guess + k) + 0.5)
        beyond = np.where(steep > 0, at > left, at <= left)
        steps = np.where(beyond, guess + k, steps)
    return steps - 1


def _filled(polygon: Array, place: Array, region: Array, regions: int, size: int) -> Array:
    """Pixels behind an odd number of crossings, column by column, of any polygon of a region."""
    pixels = size * size
    inside = place < pixels
    counts = np.bincount(polygon[inside] * pixels + place[inside], minlength=len(region) * pixels)
    odd = np.cumsum(counts.reshape(len(region), pixels), axis=1) % 2 == 1
    found = np.zeros((regions, pixels), bool)
    np.logical_or.at(found, region, odd)
    return found.reshape(regions, size, size).transpose(0, 2, 1).reshape(regions, pixels)


# bipartite_match ------------------------------------------------------------------------------------------------------
_NOTHING = 1e-6  # nearness below which there is no match


def _match(near: Array) -> tuple[Array, Array]:
    """Row of each column, and how near it is; of equal pairs that of the first column, then of the first row."""
    rows, columns = near.shape
    index, nearness = np.full(columns, -1, np.int32), np.zeros(columns, near.dtype)
    left = np.where(near < _NOTHING, -np.inf, near).T.copy()
    for _ in range(min(rows, columns)):
        column, row = divmod(int(left.argmax()), rows)
        if left[column, row] == -np.inf:
            break
        index[column], nearness[column] = row, near[row, column]
        left[column], left[:, row] = -np.inf, -np.inf
    return index, nearness


@kernel("bipartite_match", dtypes=FLOATS)
def bipartite_match(
    DistMat: Array, *, match_type: str, dist_threshold: float, ctx: KernelContext
) -> tuple[Array, Array]:
    lod = ctx.lod("DistMat")
    found = []
    for a, b in pairwise(lod[-1] if lod else (0, len(DistMat))):
        near = DistMat[a:b]
        index, nearness = _match(near)
        if match_type == "per_prediction" and len(near):
            best, at = near.max(axis=0), near.argmax(axis=0)
            taken = (index == -1) & (best >= _NOTHING) & (best >= dist_threshold)
            index, nearness = np.where(taken, at, index).astype(np.int32), np.where(taken, best, nearness)
        found.append((index, nearness))
    columns = DistMat.shape[1]
    indices = np.array([i for i, _ in found], np.int32).reshape(len(found), columns)
    return indices, np.array([d for _, d in found], DistMat.dtype).reshape(len(found), columns)


# generate_mask_labels -------------------------------------------------------------------------------------------------
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


# mine_hard_examples ---------------------------------------------------------------------------------------------------
@kernel("mine_hard_examples", dtypes=FLOATS)
def mine_hard_examples(
    ClsLoss: Array,
    MatchIndices: Array,
    MatchDist: Array,
    LocLoss: Array | None = None,
    *,
    neg_pos_ratio: float,
    neg_dist_threshold: float,
    sample_size: int,
    mining_type: str,
) -> tuple[LoDTensor, Array]:
    matched = MatchIndices != -1
    if mining_type == "max_negative":
        eligible, loss = ~matched & (MatchDist < neg_dist_threshold), ClsLoss
        count = (matched.sum(axis=1) * np.float32(neg_pos_ratio)).astype(np.int64)
    else:
        eligible, loss = np.ones_like(matched), ClsLoss if LocLoss is None else ClsLoss + LocLoss
        count = np.full(len(loss), sample_size)
    order = np.argsort(np.where(eligible, -loss, np.inf), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    chosen = eligible & (rank < count[:, None])
    negative = chosen & ~matched
    updated = MatchIndices if mining_type == "max_negative" else np.where(chosen, MatchIndices, -1)
    offsets = [0, *np.cumsum(negative.sum(axis=1)).tolist()]
    return LoDTensor(np.nonzero(negative)[1].astype(np.int32)[:, None], [offsets]), updated.astype(np.int32)


# retinanet_target_assign ----------------------------------------------------------------------------------------------
@kernel("retinanet_target_assign", dtypes=FLOATS)
def retinanet_target_assign(
    Anchor: Array,
    GtBoxes: Array,
    GtLabels: Array,
    IsCrowd: Array,
    ImInfo: Array,
    *,
    positive_overlap: float,
    negative_overlap: float,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    everything = (0, 0.0, sampler(ctx, use_random=False))
    overlap = (positive_overlap, negative_overlap)
    return anchor_targets(Anchor, GtBoxes, GtLabels, IsCrowd, ImInfo, overlap, everything, -1.0, ctx)


# rpn_target_assign ----------------------------------------------------------------------------------------------------
@kernel("rpn_target_assign", dtypes=FLOATS)
def rpn_target_assign(
    Anchor: Array,
    GtBoxes: Array,
    IsCrowd: Array,
    ImInfo: Array,
    *,
    rpn_batch_size_per_im: int,
    rpn_straddle_thresh: float,
    rpn_positive_overlap: float,
    rpn_negative_overlap: float,
    rpn_fg_fraction: float,
    use_random: bool,
    ctx: KernelContext,
) -> tuple[LoDTensor, ...]:
    overlap = (rpn_positive_overlap, rpn_negative_overlap)
    sampling = (rpn_batch_size_per_im, rpn_fg_fraction, sampler(ctx, use_random))
    return anchor_targets(Anchor, GtBoxes, None, IsCrowd, ImInfo, overlap, sampling, rpn_straddle_thresh, ctx)[:5]


# target_assign --------------------------------------------------------------------------------------------------------
@kernel("target_assign", dtypes=FLOATS | INTEGERS)
def target_assign(
    X: Array, MatchIndices: Array, NegIndices: Array | None = None, *, mismatch_value: int, ctx: KernelContext
) -> tuple[Array, Array]:
    n, m = MatchIndices.shape
    rows = np.diff(ctx.lod("X")[-1])
    matched = MatchIndices != -1
    if len(rows) != n or (MatchIndices >= rows[:, None]).any() or (MatchIndices < -1).any():
        raise InvalidArgumentError(
            f"op target_assign: MatchIndices {list(MatchIndices.shape)} goes up to {MatchIndices.max(initial=-1)}, and "
            f"X holds {rows.tolist()} rows for each image; expected indices below the rows of each image, or -1"
        )
    out = np.full((n, m, X.shape[2]), mismatch_value, X.dtype)
    image, prior = np.nonzero(matched)
    out[image, prior] = X[np.array(ctx.lod("X")[-1])[image] + MatchIndices[image, prior], prior % max(X.shape[1], 1)]
    weight = matched[..., None].astype(np.float32)
    if NegIndices is not None:
        offsets = ctx.lod("NegIndices")[-1]
        image = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        out[image, NegIndices.reshape(-1)] = mismatch_value
        weight[image, NegIndices.reshape(-1)] = 1
    return out, weight
