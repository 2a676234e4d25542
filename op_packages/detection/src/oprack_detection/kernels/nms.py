"""Kernels of non-maximum suppression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels._boxes import areas, overlaps

# polygons -------------------------------------------------------------------------------------------------------------
# Polygons [x1, y1, x2, y2, ...]: areas and overlaps of many pairs at once, in double precision.
# Points belong to a polygon by the even-odd rule, so any order of the corners, dents and crossing sides will do.
_ELEMENTS = 1 << 20  # of the largest temporary array


def polygon_areas(polygons: Array) -> Array:
    """Areas [...] of polygons [..., 2 corners], by the shoelace formula; what is run round the other way counts off."""
    x, y = _coordinates(polygons)
    return np.abs(_cross(x, y, np.roll(x, -1, -1), np.roll(y, -1, -1)).sum(-1)) / 2


def polygon_overlaps(a: Array, b: Array, above: float = 0.0) -> Array:
    """Intersection over union of polygons, which broadcast; 0 where one has no area, or it cannot be more than `above`.

    What they share is at most the smaller of them, and what the upright boxes around them share; most pairs need no
    more than that.
    """
    shape = np.broadcast_shapes(a.shape, b.shape)
    areas = polygon_areas(a), polygon_areas(b)
    union = areas[0] + areas[1]
    inside = np.zeros(shape[:-1])
    most = np.minimum(np.minimum(*areas), _shared_by_boxes(a, b)) * (1 + 1e-6)
    near = (most > 0) & (most > above * (union - most))
    chosen = [np.broadcast_to(p, shape)[near] for p in (a, b)]
    count, sides = len(chosen[0]), shape[-1]
    step = max(1, _ELEMENTS // (sides * sides * sides))
    parts = [_intersections(chosen[0][i : i + step], chosen[1][i : i + step]) for i in range(0, count, step)]
    inside[near] = np.concatenate(parts) if parts else 0
    union = union - inside
    return (inside / np.where(union > 0, union, 1)).astype(a.dtype)


def _coordinates(polygons: Array) -> tuple[Array, Array]:
    """x and y [..., corners] of polygons [..., 2 corners]."""
    return polygons[..., 0::2].astype(np.float64), polygons[..., 1::2].astype(np.float64)


def _cross(ax: Array, ay: Array, bx: Array, by: Array) -> Array:
    return ax * by - ay * bx


def _shared_by_boxes(a: Array, b: Array) -> Array:
    """Area that the upright boxes around two polygons share."""
    shared: Any = 1.0
    for p, q in zip(_coordinates(a), _coordinates(b), strict=True):
        shared = shared * np.maximum(np.minimum(p.max(-1), q.max(-1)) - np.maximum(p.min(-1), q.min(-1)), 0)
    return shared


def _intersections(a: Array, b: Array) -> Array:
    """Areas [K] that polygons [K, 2 corners] share, pair by pair.

    Horizontal lines through all corners and crossings cut the plane into slabs, in which no two sides cross: the part
    of a line that lies in both polygons has a length that is linear in y there, so its middle value times the height of
    the slab is the area.
    """
    ax, ay = _coordinates(a)
    bx, by = _coordinates(b)
    half = ax.shape[1]
    x, y = (np.concatenate([p - p[:, :1], q - p[:, :1]], 1) for p, q in ((ax, bx), (ay, by)))  # products stay small
    end_x, end_y = (np.concatenate([np.roll(p[:, :half], -1, 1), np.roll(p[:, half:], -1, 1)], 1) for p in (x, y))
    dx, dy = end_x - x, end_y - y
    cuts = np.sort(np.concatenate([y, _crossings(x, y, dx, dy)], 1), axis=1)
    heights = np.diff(cuts, axis=1)
    middle = (cuts[:, :-1] + heights / 2)[:, :, None]
    crossed = (y[:, None] > middle) != (end_y[:, None] > middle)  # an even number of them
    with np.errstate(divide="ignore", invalid="ignore"):
        at = np.where(crossed, x[:, None] + (middle - y[:, None]) / dy[:, None] * dx[:, None], np.inf)
    order = np.argsort(at, axis=2)
    at = np.take_along_axis(at, order, 2)
    crossed = np.take_along_axis(crossed, order, 2)
    of_a = order < half
    inside = (np.cumsum(crossed & of_a, axis=2) & np.cumsum(crossed & ~of_a, axis=2) & 1)[:, :, :-1].astype(bool)
    left, right = np.where(inside, at[:, :, :-1], 0), np.where(inside, at[:, :, 1:], 0)
    return ((right - left).sum(2) * heights).sum(1)


def _crossings(x: Array, y: Array, dx: Array, dy: Array) -> Array:
    """y [K, most crossings of a pair] where two sides cross; the greatest y of the corners where there are fewer."""
    i, j = np.triu_indices(x.shape[1], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = _cross(dx[:, i], dy[:, i], dx[:, j], dy[:, j])
        gap_x, gap_y = x[:, j] - x[:, i], y[:, j] - y[:, i]
        first = _cross(gap_x, gap_y, dx[:, j], dy[:, j]) / slope
        second = _cross(gap_x, gap_y, dx[:, i], dy[:, i]) / slope
        cross = (first > 0) & (first < 1) & (second > 0) & (second < 1)
        at = np.where(cross, y[:, i] + first * dy[:, i], y.max(axis=1, keepdims=True))
    return np.sort(at, axis=1)[:, : cross.sum(axis=1).max()]


# suppression ----------------------------------------------------------------------------------------------------------
# Greedy non-maximum suppression, and the choice of detections of one image.
_BLOCK = 128  # candidates that are compared with each other at once

_PAIRS = 1 << 15  # pairs of boxes whose overlaps are computed at once, so that they stay in the caches


def descending(scores: Array) -> Array:
    """Indices that sort scores from high to low; equal ones keep their order."""
    return np.argsort(-scores, kind="stable")


def suppress(boxes: Array, threshold: float, eta: float, pixel: int) -> Array:
    """Indices of the boxes [K, 4], best first, that overlap no better kept box by more than `threshold`.

    Boxes of more numbers are polygons, for which `pixel` does not count. eta < 1 lowers the threshold after each kept
    box while it is above 0.5.
    """
    if eta < 1 and threshold > 0.5:
        return _suppress_adaptively(boxes, threshold, eta, pixel)
    kept, alive = [], np.arange(len(boxes))
    while len(alive):
        head, alive = alive[:_BLOCK], alive[_BLOCK:]
        chosen = head[_greedy(_bits(boxes[head], threshold, pixel), range(len(head)))]
        kept.append(chosen)
        if len(alive):
            far = [near.any(axis=0) for near in _near(boxes[chosen], boxes[alive], threshold, pixel)]
            alive = alive[~np.logical_or.reduce(far)]
    return np.concatenate(kept) if kept else np.empty(0, np.int64)


def suppress_each(boxes: Array, orders: Sequence[Array], threshold: float, eta: float, pixel: int) -> list[Array]:
    """What `suppress` keeps of each row of candidates: indices of boxes [M, 4], which all rows share.

    Where rows have candidates in common, pairs of boxes are compared once for all of them.
    """
    used = np.unique(np.concatenate(orders))
    if (eta < 1 and threshold > 0.5) or 2 * len(used) ** 2 > sum(len(order) ** 2 for order in orders):
        return [order[suppress(boxes[order], threshold, eta, pixel)] for order in orders]
    bits = _bits(boxes[used], threshold, pixel)
    return [used[_greedy(bits, np.searchsorted(used, order).tolist())] for order in orders]


def pair_overlaps(a: Array, b: Array, pixel: int, above: float = 0.0) -> Array:
    """Overlaps of boxes; those of polygons may be 0 where they are not more than `above`."""
    return overlaps(a, b, pixel, np) if a.shape[-1] == 4 else polygon_overlaps(a, b, above)


def _near(a: Array, b: Array, threshold: float, pixel: int) -> Iterator[Array]:
    """Rows [K, len(b)], some at a time: which boxes of `a` overlap which of `b` by more than a threshold."""
    step = max(1, _PAIRS // max(1, len(b)))
    a, b = np.asfortranarray(a), np.asfortranarray(b)  # each coordinate in a row
    if not pixel and a.shape[-1] == 4 and a.dtype == b.dtype and len(a) and len(b):
        sizes = [areas(boxes, pixel, np) for boxes in (a, b)]
        if all(s.min() > 0 and np.isfinite(s.max()) for s in sizes):
            yield from _near_boxes(a, b, sizes[0], sizes[1], threshold, min(step, len(a)))
            return
    for i in range(0, len(a), step):
        yield pair_overlaps(a[i : i + step, None], b[None], pixel, threshold) > threshold


def _near_boxes(a: Array, b: Array, a_sizes: Array, b_sizes: Array, threshold: float, step: int) -> Iterator[Array]:
    """What `_near` gives of boxes that have an area, step by step as `overlaps` computes it, in memory used again."""
    memory, none = np.empty((3, step, len(b)), a.dtype), a.dtype.type(0)
    for i in range(0, len(a), step):
        some = a[i : i + step, None]
        width, height, other = memory[:, : len(some)]
        for extent, first, last in ((width, 0, 2), (height, 1, 3)):
            np.minimum(some[..., last], b[:, last], out=extent)
            extent -= np.maximum(some[..., first], b[:, first], out=other)
            np.maximum(extent, none, out=extent)
        inside = np.multiply(width, height, out=width)
        union = np.add(a_sizes[i : i + step, None], b_sizes, out=height)
        union -= inside
        inside /= union
        yield inside > threshold


def _bits(boxes: Array, threshold: float, pixel: int) -> list[int]:
    """For each box the boxes that it overlaps by more than a threshold, as bits of a number."""
    packed = [np.packbits(near, axis=1, bitorder="little") for near in _near(boxes, boxes, threshold, pixel)]
    return [int.from_bytes(row.tobytes(), "little") for rows in packed for row in rows]


def _greedy(near: Sequence[int], order: Iterable[int]) -> list[int]:
    """What is kept of candidates, best first, when each one that is kept excludes those near to it."""
    gone, kept = 0, []
    for i in order:
        if not gone >> i & 1:
            kept.append(i)
            gone |= near[i]
    return kept


def _suppress_adaptively(boxes: Array, threshold: float, eta: float, pixel: int) -> Array:
    kept, at = [], 0
    worst = np.zeros(len(boxes), boxes.dtype)
    while at < len(boxes):
        kept.append(at)
        if threshold > 0.5:
            threshold *= eta
        rest = slice(at + 1, None)
        np.maximum(worst[rest], pair_overlaps(boxes[at], boxes[rest], pixel), out=worst[rest])
        free = worst[rest] <= threshold
        at += 1 + (int(free.argmax()) if free.any() else len(boxes))
    return np.array(kept, dtype=np.int64)


def best(scores: Array, threshold: float, top_k: int) -> Array:
    """Indices of the scores above a threshold, best first, at most top_k of them (-1: all)."""
    above = np.flatnonzero(scores > threshold)
    if -1 < 2 * top_k < len(above):
        values, last = scores[above], len(above) - top_k
        # with all that are as high as the last of them, which go by their order
        above = above[values >= np.partition(values, last)[last]] if top_k else above[:0]
    order = above[descending(scores[above])]
    return order[:top_k] if top_k > -1 else order


def keep_best(labels: Array, index: Array, scores: Array, keep_top_k: int) -> tuple[Array, Array]:
    """(labels, index) of the keep_top_k best detections (-1: all), by class and from high to low score in each."""
    if keep_top_k > -1 and len(labels) > keep_top_k:
        chosen = descending(scores)[:keep_top_k]
        chosen = chosen[np.argsort(labels[chosen], kind="stable")]
        return labels[chosen], index[chosen]
    return labels, index


# multiclass nms -------------------------------------------------------------------------------------------------------
# Suppression per class and image, and the best of all classes.
class NmsOptions(NamedTuple):
    """What kernels of multiclass_nms and its versions take as one parameter: the attributes of these names."""

    background_label: int
    score_threshold: float
    nms_top_k: int
    nms_threshold: float
    nms_eta: float
    keep_top_k: int
    normalized: bool


def _detect(boxes: Array, scores: Array, options: NmsOptions) -> tuple[Array, Array]:
    """(labels, box index) of one image. boxes: [M, 4] (or polygons) for all classes or [M, C, 4]; scores: [C, M]."""
    classes = [c for c in range(len(scores)) if c != options.background_label]
    orders = [best(scores[c], options.score_threshold, options.nms_top_k) for c in classes]
    if not classes:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    wider = 0 if options.normalized else 1
    limits = options.nms_threshold, options.nms_eta, wider
    if boxes.ndim == 2:
        found = suppress_each(boxes, orders, *limits)
    else:
        found = [np.sort(o[suppress(boxes[o, c], *limits)]) for c, o in zip(classes, orders, strict=True)]
    labels = [np.full(len(index), c) for c, index in zip(classes, found, strict=True)]
    label, index = np.concatenate(labels), np.concatenate(found)
    label, index = keep_best(label, index, scores[label, index], options.keep_top_k)
    if boxes.ndim == 3:
        order = np.lexsort((index, label))
        label, index = label[order], index[order]
    return label, index


def _images(
    boxes: Array, scores: Array, rois_num: Array | None, lod: Sequence[Sequence[int]]
) -> list[tuple[Array, Array, int, int]]:
    """(boxes, scores [C, M], offset of the index, stride of the index) of each image."""
    if scores.ndim == 3:
        return [(boxes[i], scores[i], i * scores.shape[2], 1) for i in range(len(scores))]
    if rois_num is not None:
        offsets: Sequence[int] = [0, *np.cumsum(rois_num).tolist()]
    elif lod:
        offsets = lod[-1]
    else:
        raise InvalidArgumentError(
            f"op multiclass_nms: Scores has shape {list(scores.shape)}, the form for boxes of many images in one list, "
            "but neither LoD nor RoisNum tells the images apart; feed BBoxes with LoD or give RoisNum"
        )
    classes = scores.shape[1]
    return [(boxes[a:b], scores[a:b].T, a * classes, classes) for a, b in pairwise(offsets)]


def detections(
    boxes: Array, scores: Array, rois_num: Array | None, lod: Sequence[Sequence[int]], options: NmsOptions
) -> tuple[Array, ...]:
    """Rows [K, 2 + numbers of a box], index [K, 1] and detections per image."""
    rows, places, counts = [], [], []
    for image_boxes, image_scores, offset, stride in _images(boxes, scores, rois_num, lod):
        label, index = _detect(image_boxes, image_scores, options)
        row = np.empty((len(label), 2 + boxes.shape[-1]), scores.dtype)
        row[:, 0] = label
        row[:, 1] = image_scores[label, index]
        row[:, 2:] = image_boxes[index] if image_boxes.ndim == 2 else image_boxes[index, label]
        rows.append(row)
        places.append(offset + index * stride + (label if stride > 1 else 0))
        counts.append(len(label))
    out = np.concatenate(rows) if rows else np.empty((0, 2 + boxes.shape[-1]), scores.dtype)
    place = np.concatenate(places) if places else np.empty(0, np.int64)
    return out, place.astype(np.int32).reshape(-1, 1), np.array(counts, np.int32)


# locality_aware_nms ---------------------------------------------------------------------------------------------------
def _merged(boxes: Array, scores: Array, threshold: float, pixel: int) -> tuple[Array, Array, Array]:
    """Boxes and scores after neighbours were merged, and the indices of those that are left.

    What a box is compared with depends on all merges before, so they are walked one by one.
    """
    boxes, scores = boxes.copy(), scores.copy()
    left, last = [], -1
    for i in range(len(boxes)):
        if last > -1 and pair_overlaps(boxes[i, None], boxes[last, None], pixel)[0] > threshold:
            total = scores[i] + scores[last]
            boxes[last] = (boxes[i] * scores[i] + boxes[last] * scores[last]) / total
            scores[last] = total
        else:
            left.append(i)
            last = i
    return boxes, scores, np.array(left, np.int64)


@kernel("locality_aware_nms", dtypes=FLOATS)
def locality_aware_nms(BBoxes: Array, Scores: Array, *, options: NmsOptions) -> LoDTensor:
    pixel = 0 if options.normalized else 1
    images, offsets = [], [0]
    for image_boxes, image_scores in zip(BBoxes, Scores, strict=True):
        rows = [np.empty((0, 2 + BBoxes.shape[2]), Scores.dtype)]
        for c in range(len(image_scores)):
            if c == options.background_label:
                continue
            boxes, scores, left = _merged(image_boxes, image_scores[c], options.nms_threshold, pixel)
            order = left[best(scores[left], options.score_threshold, options.nms_top_k)]
            kept = order[suppress(boxes[order], options.nms_threshold, options.nms_eta, pixel)]
            label = np.full((len(kept), 1), c, Scores.dtype)
            rows.append(np.concatenate([label, scores[kept, None], boxes[kept]], axis=1))
        table = np.concatenate(rows)
        _, index = keep_best(table[:, 0], np.arange(len(table)), table[:, 1], options.keep_top_k)
        images.append(table[index])
        offsets.append(offsets[-1] + len(index))
    if not offsets[-1]:
        return LoDTensor(np.full((1, 1), -1, Scores.dtype), [[0, 1]])
    return LoDTensor(np.concatenate(images), [offsets])


# multiclass_nms -------------------------------------------------------------------------------------------------------
@kernel("multiclass_nms", dtypes=FLOATS)
def multiclass_nms(BBoxes: Array, Scores: Array, *, options: NmsOptions, ctx: KernelContext) -> LoDTensor:
    out, _, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), options)
    if not len(out):
        return LoDTensor(np.full((1, 1), -1, Scores.dtype), [[0, 1]])
    return LoDTensor(out, [[0, *np.cumsum(counts).tolist()]])


# multiclass_nms2 ------------------------------------------------------------------------------------------------------
@kernel("multiclass_nms2", dtypes=FLOATS)
def multiclass_nms2(
    BBoxes: Array, Scores: Array, *, options: NmsOptions, ctx: KernelContext
) -> tuple[LoDTensor, LoDTensor]:
    out, index, counts = detections(BBoxes, Scores, None, ctx.lod("BBoxes"), options)
    lod = [[0, *np.cumsum(counts).tolist()]]
    return LoDTensor(out, lod), LoDTensor(index, [list(lod[0])])


# multiclass_nms3 ------------------------------------------------------------------------------------------------------
@kernel("multiclass_nms3", dtypes=FLOATS)
def multiclass_nms3(
    BBoxes: Array, Scores: Array, RoisNum: Array | None = None, *, options: NmsOptions, ctx: KernelContext
) -> tuple[Array, ...]:
    return detections(BBoxes, Scores, RoisNum, ctx.lod("BBoxes"), options)


# nms ------------------------------------------------------------------------------------------------------------------
@kernel("nms", dtypes=FLOATS)
def nms(Boxes: Array, *, iou_threshold: float) -> Array:
    return suppress(Boxes, iou_threshold, 1.0, 0).astype(np.int64)


# retinanet_detection_output -------------------------------------------------------------------------------------------
def _decode(anchors: Array, codes: Array, info: Array) -> Array:
    """Boxes [K, 4] in pixels of the image before it was scaled."""
    kind = codes.dtype.type
    size = anchors[:, 2:] - anchors[:, :2] + kind(1)
    middle = codes[:, :2] * size + anchors[:, :2] + size / kind(2)
    half = np.exp(codes[:, 2:]) * size / kind(2)
    boxes = np.concatenate([middle - half, middle + half - kind(1)], axis=1) / info[2]
    height, width = np.floor(info[:2] / info[2] + kind(0.5)) - kind(1)
    return np.clip(boxes, kind(0), np.array([width, height, width, height], codes.dtype))


@kernel("retinanet_detection_output", dtypes=FLOATS)
def retinanet_detection_output(
    BBoxes: list[Array],
    Scores: list[Array],
    Anchors: list[Array],
    ImInfo: Array,
    *,
    score_threshold: float,
    nms_top_k: int,
    nms_threshold: float,
    nms_eta: float,
    keep_top_k: int,
) -> LoDTensor:
    rows = []
    for i, info in enumerate(ImInfo):
        boxes, scores, labels = [], [], []
        for level, (codes, of_level, anchors) in enumerate(zip(BBoxes, Scores, Anchors, strict=True)):
            threshold = score_threshold if level + 1 < len(Scores) else 0.0
            flat = of_level[i].reshape(-1)
            found = best(flat, threshold, nms_top_k)
            anchor, label = np.divmod(found, max(of_level.shape[2], 1))
            boxes.append(_decode(anchors[anchor], codes[i, anchor], info))
            scores.append(flat[found])
            labels.append(label)
        box, score, label = np.concatenate(boxes), np.concatenate(scores), np.concatenate(labels)
        kept = []
        for c in np.unique(label):
            order = np.flatnonzero(label == c)
            order = order[descending(score[order])]
            kept.append(order[suppress(box[order], nms_threshold, nms_eta, 1)])
        index = np.concatenate([np.empty(0, np.int64), *kept])
        index = index[descending(score[index])]
        index = index[:keep_top_k] if keep_top_k > -1 else index
        rows.append(np.concatenate([label[index, None] + 1, score[index, None], box[index]], axis=1))
    offsets = np.cumsum([0, *(len(r) for r in rows)]).tolist()
    table = np.concatenate([np.empty((0, 6)), *rows])
    return LoDTensor(table.astype(ImInfo.dtype), [offsets])
