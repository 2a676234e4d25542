"""What is left of many boxes: suppression, proposals, and their levels."""

from __future__ import annotations

import math

import numpy as np
from onnx import helper
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import offsets_of, scan, set_lod
from oprack_onnx.export.nets.boxes import images_of, overlaps, parts
from oprack_onnx.export.nets.polygons import polygon_overlaps
from oprack_onnx.values import ELEM_TYPES

INT64 = VarType.INT64


def lowest(x: Expr) -> float:
    """The lowest number of a dtype, which no threshold is below."""
    return float(np.finfo(numpy_dtype(x.dtype)).min)


def wider(boxes: Expr, pixel: int) -> Expr:
    """Boxes whose last corners lie behind their last pixel."""
    return boxes + boxes.like([0.0, 0.0, 1.0, 1.0]) if pixel else boxes


def suppressed(boxes: Expr, scores: Expr, most: Expr, overlap: float, above: float) -> list[Expr]:
    """What is kept of boxes [batch, n, 4] with scores [batch, classes, n]: batch, class and box of each.

    By batch and class, and from high to low score in each.
    """
    limits = [constant(boxes.graph, np.float32(v), VarType.FP32) for v in (overlap, above)]
    found = boxes.cast(VarType.FP32).op("NonMaxSuppression", scores.cast(VarType.FP32), most, *limits, dtype=INT64)
    return [found.at(k, 1) for k in range(3)]


def suppressed_polygons(call: Call, boxes: Expr, scores: Expr, most: int, overlap: float, above: float) -> list[Expr]:
    """What `suppressed` gives, of corners [batch, n, 8]: one after the other, the best of each class first."""
    n, images, classes = scores.size(2), scores.size(0), scores.size(1)
    size = n if most < 0 else n.minimum(most)
    values, order = scores.top(size)
    flat = order.reshape(images, -1).unsqueeze(2)
    rows = boxes.op("GatherND", flat, batch_dims=1).reshape(-1, size, 8)  # of each image and class
    place = arange(size)

    def step(states: list[Expr], given: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        (kept,), (k, best) = states, given
        inner, every = Expr(kept.graph, place.name, place.dtype), Expr(kept.graph, rows.name, rows.dtype)
        alive = kept.op("Gather", k.reshape(1), axis=1, dtype=VarType.BOOL)
        near = polygon_overlaps(best.unsqueeze(1), every) > overlap
        return [kept & ~(alive & near & (inner > k))], []

    first = full(rows.shape(0, 2), True, VarType.BOOL)
    (kept,) = scan(call, [first], [place, rows.transpose(1, 0, 2)], step, [2])
    found = kept.reshape(images, classes, size) & (values > above)
    where = found.nonzero()
    box = order.op("GatherND", where.transpose(1, 0))
    return [where.at(0, 0), where.at(1, 0), box]


def best_of(scores: Expr, count: int) -> Expr:
    """Scores, the lowest number in the place of those that are not among the `count` best of the last axis."""
    if count < 0:
        return scores
    size = scores.size(-1)
    values, places = scores.top(size.minimum(count))
    return full(scores.shape(), lowest(scores), scores.dtype).op("ScatterElements", places, values, axis=-1)


def best_of_each_image(image: Expr, scores: Expr, images: Expr, count: int) -> Expr:
    """Whether a detection is among the `count` best of its image."""
    _, order = scores.top(scores.size(0), 0)
    hit = image.gather(order).unsqueeze(1).equal(arange(images)).cast(INT64)
    rank = (hit.cumsum() * hit).sum(1)
    return full(scores.shape(), False, VarType.BOOL).op("ScatterElements", order, rank <= count, axis=0)


def rising(key: Expr) -> Expr:
    """The order in which keys rise."""
    return key.top(key.size(0), 0, False)[1]


def counted(image: Expr, images: Expr) -> Expr:
    """How many of each image."""
    return full(images, 0, INT64).scatter_add(image, full(image.shape(), 1, INT64))


@exported("multiclass_nms3", "multiclass_nms2", "multiclass_nms")
def multiclass_nms(call: Call) -> None:
    boxes, scores, rank = read(call, "BBoxes"), read(call, "Scores"), call.rank("Scores")
    if call.attr("nms_eta") < 1:
        raise UnimplementedError("its threshold adapts")
    polygons = call.dims("BBoxes")[-1] == 8
    if call.dims("BBoxes")[-1] not in (4, 8, -1) or (polygons and rank == 2):
        raise UnimplementedError("its boxes are polygons of more than four corners, or lie in one list")
    pixel, background = 0 if call.attr("normalized") else 1, call.attr("background_label")
    if rank == 3:
        (all_boxes, all_scores), images = (boxes, scores), boxes.size(0)
        classes = scores.size(1)
    else:
        all_boxes, all_scores, images, classes = _of_one_list(call, boxes, scores)
    place = arange(classes).reshape(1, -1, 1)
    if background >= 0:
        all_scores = place.equal(background).select(lowest(scores), all_scores)
    ready = best_of(all_scores, call.attr("nms_top_k"))
    if rank == 2:  # each class has boxes of its own
        ready = ready.reshape(-1, 1, ready.size(2))
    count = ready.size(2)
    limits = call.attr("nms_threshold"), call.attr("score_threshold")
    if polygons:
        image, label, box = suppressed_polygons(call, all_boxes, ready, call.attr("nms_top_k"), *limits)
    else:
        image, label, box = suppressed(wider(all_boxes, pixel), ready, count, *limits)
    if rank == 2:
        image, label = image / classes, image - image / classes * classes
        order = rising((image * classes + label) * count + box)
        image, label, box = (v.gather(order) for v in (image, label, box))
        where = box.unsqueeze(1).join(label.unsqueeze(1), axis=1)
        score, corners = scores.op("GatherND", where), boxes.op("GatherND", where)
        index = box * classes + label
    else:
        where = image.unsqueeze(1).join(label.unsqueeze(1), box.unsqueeze(1), axis=1)
        score = scores.op("GatherND", where)
        corners = boxes.op("GatherND", image.unsqueeze(1).join(box.unsqueeze(1), axis=1))
        index = image * count + box
    rows = label.cast(scores.dtype).unsqueeze(1).join(score.unsqueeze(1), corners, axis=1)
    if call.attr("keep_top_k") > -1:
        kept = best_of_each_image(image, score, images, call.attr("keep_top_k"))
        rows, index, image = (v.op("Compress", kept, axis=0) for v in (rows, index, image))
    _write_detections(call, rows, index.cast(VarType.INT32).reshape(-1, 1), counted(image, images))


def _of_one_list(call: Call, boxes: Expr, scores: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Boxes [images * classes, n, 4] and scores [images, classes, n] of the boxes of all images in one list."""
    slot = "RoisNum" if call.type == "multiclass_nms3" else ""
    image, images = images_of(call, "BBoxes", slot)
    n, classes = scores.size(0), scores.size(1)
    own = image.unsqueeze(0).equal(arange(images).unsqueeze(1)).unsqueeze(1)  # [images, 1, n]
    wide = own.select(scores.transpose(1, 0).unsqueeze(0), lowest(scores))
    each = boxes.transpose(1, 0, 2).unsqueeze(0).expand(images, 1, 1, 1)
    return each.reshape(-1, n, 4), wide, images, classes


def _write_detections(call: Call, rows: Expr, index: Expr, counts: Expr) -> None:
    if call.type == "multiclass_nms3":
        write(call, rows)
        write(call, index, "Index")
        write(call, counts.cast(VarType.INT32), "NmsRoisNum")
        return
    offsets = offsets_of(counts)
    if call.type == "multiclass_nms2":
        write(call, rows)
        write(call, index, "Index")
        for slot in ("Out", "Index"):
            set_lod(call, [offsets], slot)
        return
    none = rows.size(0).equal(0).scalar()
    write(call, either(call, none, rows.like([[-1.0]]), rows))
    set_lod(call, [either(call, none, constant(call.graph, [0, 1]), offsets)])


def either(call: Call, condition: Expr, yes: Expr, no: Expr) -> Expr:
    """One of two values, whose shapes differ."""
    branches = []
    for name, value in (("then", yes), ("else", no)):
        out = call.graph.fresh(name)
        info = helper.make_tensor_value_info(out, ELEM_TYPES[value.dtype], None)
        branches.append(helper.make_graph([helper.make_node("Identity", [value.name], [out])], name, [], [info]))
    return Expr(
        call.graph,
        str(call.graph.node("If", [condition.name], then_branch=branches[0], else_branch=branches[1])),
        yes.dtype,
    )


@exported("nms")
def nms(call: Call) -> None:
    boxes = read(call, "Boxes")
    n = boxes.size(0)
    scores = (n - arange(n)).cast(VarType.FP32).reshape(1, 1, -1)
    _, _, kept = suppressed(boxes.unsqueeze(0), scores, n, call.attr("iou_threshold"), -1.0)
    write(call, kept, "KeepBoxesIdxs")


@exported("matrix_nms")
def matrix_nms(call: Call) -> None:
    """Scores that decay with the overlap with better boxes of their class."""
    boxes, scores, background = read(call, "BBoxes"), read(call, "Scores"), call.attr("background_label")
    n, images, classes = boxes.size(1), boxes.size(0), scores.size(1)
    above, most, keep = call.attr("score_threshold"), call.attr("nms_top_k"), call.attr("keep_top_k")
    size = n if most < 0 else n.minimum(most)
    if background >= 0:
        scores = arange(classes).reshape(1, -1, 1).equal(background).select(lowest(scores), scores)
    values, places = scores.top(size)  # [images, classes, size]
    flat = places.reshape(images, -1)
    chosen = boxes.op("GatherND", flat.unsqueeze(2), batch_dims=1).reshape(images, classes, size, 4)
    place = arange(size)
    better = place.unsqueeze(1) < place.unsqueeze(0)  # [better, worse]
    pixel = 0.0 if call.attr("normalized") else 1.0
    iou = better.select(overlaps(chosen.unsqueeze(3), chosen.unsqueeze(2), pixel), 0)
    held = iou.max(-2).unsqueeze(-1)
    if call.attr("use_gaussian"):
        decay = ((held * held - iou * iou) * call.attr("gaussian_sigma")).exp()
    else:
        free = held < 1.0
        decay = free.select((1.0 - iou) / free.select(1.0 - held, 1), 1)
    decayed = values * better.select(decay, 1).min(-2)
    decayed = (values > above).select(decayed, lowest(scores)).reshape(images, -1)
    total = decayed.size(1)
    sorted_scores, order = decayed.top(total if keep < 0 else total.minimum(keep))
    kept = (sorted_scores > call.attr("post_threshold")).nonzero()
    image = kept.at(0, 0)
    pair = kept.transpose(1, 0)
    own = order.op("GatherND", pair)
    index = flat.op("GatherND", image.unsqueeze(1).join(own.unsqueeze(1), axis=1))
    label = (own / size).cast(scores.dtype)
    score = sorted_scores.op("GatherND", pair)
    corners = boxes.op("GatherND", image.unsqueeze(1).join(index.unsqueeze(1), axis=1))
    write(call, label.unsqueeze(1).join(score.unsqueeze(1), corners, axis=1))
    write(call, (image * n + index).cast(VarType.INT32).unsqueeze(1), "Index")
    write(call, counted(image, images).cast(VarType.INT32), "RoisNum")


# Proposals ------------------------------------------------------------------------------------------------------------
@exported("generate_proposals_v2", "generate_proposals")
def generate_proposals(call: Call) -> None:
    """The best boxes of each image, decoded, clipped, suppressed; one of zeros where none is large enough."""
    newer = call.type == "generate_proposals_v2"
    if call.attr("eta") < 1 or call.attr("nms_thresh") <= 0:
        raise UnimplementedError("its threshold adapts, or there is none")
    pixel = 1 if not newer or call.attr("pixel_offset") else 0
    scores, deltas = read(call, "Scores"), read(call, "BboxDeltas")
    anchors, variances = (read(call, s).reshape(-1, 4) for s in ("Anchors", "Variances"))
    info, images = read(call, "ImShape" if newer else "ImInfo"), scores.size(0)
    flat = scores.transpose(0, 2, 3, 1).reshape(images, -1)
    codes = deltas.reshape(images, -1, 4, deltas.shape(2)).transpose(0, 3, 4, 1, 2).reshape(images, -1, 4)
    total, first = flat.size(1), call.attr("pre_nms_topN")
    values, places = flat.top(total.minimum(first) if first > 0 else total)  # [images, K]
    code = codes.op("GatherND", places.unsqueeze(2), batch_dims=1) * variances.gather(places)
    low, high = parts(anchors.gather(places))
    size = high - low + float(pixel)
    center = low + size * 0.5
    shift, stretch = parts(code)
    middle = shift * size + center
    half = stretch.minimum(math.log(1000.0 / 16.0)).exp() * size * 0.5
    boxes = (middle - half).join(middle + half - float(pixel), axis=2)
    border = info.slice(0, 2, 1)  # height, width
    limit = border.gather([1, 0, 1, 0], 1).unsqueeze(1)
    boxes = boxes.minimum(limit - float(pixel)).maximum(0.0)
    kept = _large_enough(call, boxes, info, limit, pixel)
    any_kept = kept.any(1, keep=True)
    kept = any_kept.select(kept, arange(kept.size(1)).equal(0).unsqueeze(0))
    boxes = any_kept.unsqueeze(2).select(boxes, 0)
    values = any_kept.select(values, 0)
    ready = kept.select(values, lowest(values)).unsqueeze(1)
    after = call.attr("post_nms_topN")
    most = constant(call.graph, [after]) if after > 0 else values.size(1)
    image, _, box = suppressed(wider(boxes, pixel), ready, most, call.attr("nms_thresh"), -3.4e38)
    where = image.unsqueeze(1).join(box.unsqueeze(1), axis=1)
    counts = counted(image, images)
    write(call, boxes.op("GatherND", where), "RpnRois")
    write(call, values.op("GatherND", where).unsqueeze(1), "RpnRoiProbs")
    write(call, counts.cast(VarType.INT32), "RpnRoisNum")
    if not newer:
        for slot in ("RpnRois", "RpnRoiProbs"):
            set_lod(call, [offsets_of(counts)], slot)


def _large_enough(call: Call, boxes: Expr, info: Expr, limit: Expr, pixel: int) -> Expr:
    low, high = parts(boxes)
    scale = info.slice(2, 3, 1).unsqueeze(1) if call.type == "generate_proposals" else None
    original = high - low if scale is None else (high - low) / scale
    least: float = max(call.attr("min_size"), 1.0)
    kept = (original + float(pixel) >= least).all(2)
    if pixel:
        inside = low + (high - low + 1.0) * 0.5 <= limit.slice(0, 2, 2)
        kept = kept & inside.all(2)
    return kept


@exported("collect_fpn_proposals")
def collect_fpn_proposals(call: Call) -> None:
    """The best of all levels, by image."""
    levels = range(len(call.op.input("MultiLevelRois")))
    found = [images_of(call, "MultiLevelRois", "MultiLevelRoIsNum", i) for i in levels]
    boxes, scores = ([read(call, s, i) for i in levels] for s in ("MultiLevelRois", "MultiLevelScores"))
    scores = [s.reshape(-1) for s in scores]
    image, box, score = (v[0].join(*v[1:], axis=0) for v in ([i for i, _ in found], boxes, scores))
    images = found[0][1]
    for _, other in found[1:]:
        images = images.maximum(other)
    _, order = score.top(score.size(0).minimum(call.attr("post_nms_topN")), 0)
    own = image.gather(order)
    order = order.gather(rising(own * own.size(0) + arange(own.size(0))))
    counts = counted(image.gather(order), images)
    write(call, box.gather(order), "FpnRois")
    set_lod(call, [offsets_of(counts)], "FpnRois")
    write(call, counts.cast(VarType.INT32), "RoisNum")


@exported("distribute_fpn_proposals")
def distribute_fpn_proposals(call: Call) -> None:
    boxes, pixel = read(call, "FpnRois"), 1.0 if call.attr("pixel_offset") else 0.0
    image, images = images_of(call, "FpnRois", "RoisNum")
    first, last = call.attr("min_level"), call.attr("max_level")
    low, high = parts(boxes)
    size = high - low
    area = (size + pixel).reduce("Prod", [1])
    area = (size < 0.0).any(1).select(0, area)
    ratio = area.sqrt() / float(call.attr("refer_scale")) + 1e-6
    level = (ratio.log() / math.log(2.0)).op("Floor") + float(call.attr("refer_level"))
    level = level.op("Clip", float(first), float(last)).cast(INT64) - first
    place = arange(boxes.size(0))
    order = rising(level * boxes.size(0) + place)
    restore = place.op("ScatterElements", order, place, axis=0)
    for k in range(last - first + 1):
        own = level.equal(k)
        counts = counted(image.op("Compress", own, axis=0), images)
        write(call, boxes.op("Compress", own, axis=0), "MultiFpnRois", k)
        set_lod(call, [offsets_of(counts)], "MultiFpnRois", k)
        write(call, counts.cast(VarType.INT32), "MultiLevelRoIsNum", k)
    write(call, restore.cast(VarType.INT32).unsqueeze(1), "RestoreIndex")


__all__ = ["LAST", "multiclass_nms"]
