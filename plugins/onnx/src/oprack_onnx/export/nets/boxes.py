"""Boxes: made, coded, clipped, compared and pooled."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, full, maybe, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import Sequences, ids_of, offsets_of

DOUBLE = VarType.FP64


def parts(boxes: Expr, axis: int = -1) -> tuple[Expr, Expr]:
    """The first and the last corners."""
    return boxes.slice(0, 2, axis), boxes.slice(2, 4, axis)


# Made from the sizes of maps ------------------------------------------------------------------------------------------
def _grid(call: Call, steps: list[Expr], offset: float) -> Expr:
    """Centres [H, W, 1, 2] of the cells of a map."""
    x = read(call, "Input")
    h, w = x.size(2), x.size(3)
    across = (arange(w).cast(DOUBLE) + offset) * steps[0]
    down = (arange(h).cast(DOUBLE) + offset) * steps[1]
    shape = h.join(w, axis=0)
    wide, high = across.unsqueeze(0).op("Expand", shape), down.unsqueeze(1).op("Expand", shape)
    return wide.unsqueeze(2, 3).join(high.unsqueeze(2, 3), axis=3)


def _write_priors(call: Call, center: Expr, halves: np.ndarray, slots: tuple[str, str]) -> Expr:
    """Boxes around centres, and their variances."""
    half = constant(call.graph, halves, DOUBLE)
    boxes = (center - half).join(center + half, axis=3)
    shape = boxes.shape()
    dtype = call.graph.dtype(call.name("Input"))
    write(call, constant(call.graph, call.attr("variances"), dtype).op("Expand", shape), slots[1])
    return boxes


@exported("anchor_generator")
def anchor_generator(call: Call) -> None:
    step, offset = np.asarray(call.attr("stride"), float), call.attr("offset")
    ratios = np.asarray(call.attr("aspect_ratios"), float)[:, None]
    base_w = np.floor(np.sqrt(step[0] * step[1] / ratios) + 0.5)
    base_h = np.floor(base_w * ratios + 0.5)
    scale = np.asarray(call.attr("anchor_sizes"), float)[None, :, None] / step
    size = (scale * np.stack([base_w, base_h], axis=-1)).reshape(-1, 2)
    one = constant(call.graph, 1.0, DOUBLE)
    center = _grid(call, [one, one], 0.0) * step + offset * (step - 1)
    boxes = _write_priors(call, center, 0.5 * (size - 1), ("Anchors", "Variances"))
    write(call, boxes.cast(call.graph.dtype(call.name("Input"))), "Anchors")


def _prior_sizes(call: Call) -> np.ndarray:
    """Widths and heights [priors, 2] in pixels, in the order of the output."""
    ratios = [1.0]
    for ratio in call.attr("aspect_ratios"):
        if all(abs(ratio - r) >= 1e-6 for r in ratios):
            ratios += [ratio, 1.0 / ratio] if call.attr("flip") else [ratio]
    largest, found = call.attr("max_sizes"), []
    for i, size in enumerate(call.attr("min_sizes")):
        square = [[np.sqrt(size * largest[i])] * 2] if largest else []
        boxes = [[size * np.sqrt(r), size / np.sqrt(r)] for r in ratios]  # that of ratio 1 comes first
        ordered = [boxes[0], *square, *boxes[1:]] if call.attr("min_max_aspect_ratios_order") else [*boxes, *square]
        found += ordered
    return np.asarray(found)


@exported("prior_box")
def prior_box(call: Call) -> None:
    halves = _prior_sizes(call) / 2
    x, image = read(call, "Input"), read(call, "Image")
    sizes = [image.size(k).cast(DOUBLE) for k in (3, 2)]
    steps = [constant(call.graph, float(call.attr(n)), DOUBLE) for n in ("step_w", "step_h")]
    if not (call.attr("step_w") and call.attr("step_h")):
        steps = [s / x.size(k).cast(DOUBLE) for s, k in zip(sizes, (3, 2), strict=True)]
    boxes = _write_priors(call, _grid(call, steps, call.attr("offset")), halves, ("Boxes", "Variances"))
    boxes = boxes / sizes[0].join(sizes[1], sizes[0], sizes[1], axis=0)
    boxes = boxes.op("Clip", 0.0, 1.0) if call.attr("clip") else boxes
    write(call, boxes.cast(x.dtype), "Boxes")


# Coded ----------------------------------------------------------------------------------------------------------------
def _centers(boxes: Expr, pixel: float) -> tuple[Expr, Expr]:
    low, high = parts(boxes)
    size = high - low + pixel if pixel else high - low
    return low + size * 0.5, size


@exported("box_coder")
def box_coder(call: Call) -> None:
    prior, target, pixel = read(call, "PriorBox"), read(call, "TargetBox"), 0.0 if call.attr("box_normalized") else 1.0
    center, size = _centers(prior, pixel)
    factor, axis = maybe(call, "PriorBoxVar"), call.attr("axis")
    if factor is None:
        factor = prior.like(call.attr("variance") or [1.0] * 4)
    if call.attr("code_type") == "encode_center_size":
        low, high = parts(target.unsqueeze(1))
        shift = ((low + high) * 0.5 - center) / size
        stretch = abs((high - low + pixel) / size).log()
        write(call, shift.join(stretch, axis=2) / factor, "OutputBox")
        return
    if axis == 1:
        center, size = center.unsqueeze(1), size.unsqueeze(1)
        factor = factor.unsqueeze(1) if call.has("PriorBoxVar") and call.rank("PriorBoxVar") == 2 else factor
    first, last = parts(target * factor)
    middle, half = first * size + center, last.exp() * size * 0.5
    write(call, (middle - half).join(middle + half - pixel, axis=-1), "OutputBox")


@exported("box_decoder_and_assign")
def box_decoder_and_assign(call: Call) -> None:
    prior, target, scores = read(call, "PriorBox"), read(call, "TargetBox"), read(call, "BoxScore")
    classes = call.dims("BoxScore")[1]
    if classes < 2:
        raise UnimplementedError("it has one class, or their number is not known")
    center, size = _centers(prior.unsqueeze(1), 1.0)
    codes, factor = target.reshape(-1, classes, 4), maybe(call, "PriorBoxVar")
    first, last = parts(codes if factor is None else codes * factor)
    middle, half = first * size + center, last.minimum(call.attr("box_clip")).exp() * size * 0.5
    boxes = (middle - half).join(middle + half - 1.0, axis=2)
    best = scores.slice(1, LAST, 1).op("ArgMax", dtype=VarType.INT64, axis=1, keepdims=1) + 1
    chosen = boxes.op("GatherND", best, batch_dims=1)
    found = scores.op("GatherElements", best, axis=1) > -1.0
    write(call, boxes.op("Reshape", target.shape()), "DecodeBox")
    write(call, found.select(chosen, prior), "OutputAssignBox")


@exported("yolo_box")
def yolo_box(call: Call) -> None:
    x, image, classes = read(call), read(call, "ImgSize"), call.attr("class_num")
    anchors, ratio = np.asarray(call.attr("anchors"), float).reshape(-1, 2), call.attr("downsample_ratio")
    count, aware = len(anchors), bool(call.attr("iou_aware"))
    n, h, w = x.size(0), x.size(2), x.size(3)
    head = x.slice(count, LAST, 1) if aware else x
    head = head.reshape(n, count, 5 + classes, h, w)

    def channel(k: int) -> Expr:
        return head.at(k, 2)  # [n, anchors, h, w]

    confidence = channel(4).sigmoid()
    if aware:
        factor = call.attr("iou_aware_factor")
        confidence = confidence ** (1 - factor) * x.slice(0, count, 1).sigmoid() ** factor
    kept = confidence >= call.attr("conf_thresh")
    sizes = image.cast(x.dtype)
    image_h, image_w = (sizes.at(k, 1).reshape(-1, 1, 1, 1) for k in (0, 1))
    wide, high = (v.scalar().cast(x.dtype) for v in (w, h))
    stretch = call.attr("scale_x_y")
    bias = -0.5 * (stretch - 1)
    column, row = arange(w).cast(x.dtype), arange(h).cast(x.dtype).unsqueeze(1)
    middle_x = (column + channel(0).sigmoid() * stretch + bias) * image_w / wide
    middle_y = (row + channel(1).sigmoid() * stretch + bias) * image_h / high
    own = x.like(anchors.reshape(1, count, 2, 1, 1))
    half_w = channel(2).exp() * own.at(0, 2) * image_w / (wide * float(ratio)) / 2.0
    half_h = channel(3).exp() * own.at(1, 2) * image_h / (high * float(ratio)) / 2.0
    corners = [middle_x - half_w, middle_y - half_h, middle_x + half_w, middle_y + half_h]
    if call.attr("clip_bbox"):
        corners = [
            corners[0].maximum(0.0),
            corners[1].maximum(0.0),
            corners[2].minimum(image_w - 1.0),
            corners[3].minimum(image_h - 1.0),
        ]
    listed = [c.unsqueeze(4) for c in corners]
    boxes = kept.unsqueeze(4).select(listed[0].join(*listed[1:], axis=4), 0)
    scores = head.slice(5, LAST, 2).sigmoid() * kept.select(confidence, 0).unsqueeze(2)
    cells = h * w * count
    write(call, boxes.reshape(n, cells, 4), "Boxes")
    write(call, scores.transpose(0, 1, 3, 4, 2).reshape(n, cells, classes), "Scores")


@exported("polygon_box_transform")
def polygon_box_transform(call: Call) -> None:
    x = read(call, "Input")
    across = (arange(x.size(3)) * 4).cast(x.dtype).reshape(1, 1, -1)
    down = (arange(x.size(2)) * 4).cast(x.dtype).reshape(1, -1, 1)
    even = arange(x.size(1)).op("Mod", 2).equal(0).reshape(-1, 1, 1)
    write(call, even.select(across, down) - x, "Output")


@exported("box_clip")
def box_clip(call: Call) -> None:
    x, info = read(call, "Input"), read(call, "ImInfo")
    size = (info.slice(0, 2, 1) / info.slice(2, 3, 1)).op("Round") - 1.0  # height, width
    last = size.gather([1, 0, 1, 0], 1).gather(Sequences(call, "Input").ids())
    last = last if call.rank("Input") == 2 else last.reshape(-1, *[1] * (call.rank("Input") - 2), 4)
    write(call, x.minimum(last).maximum(0.0), "Output")


# Compared -------------------------------------------------------------------------------------------------------------
def overlaps(a: Expr, b: Expr, pixel: float) -> Expr:
    """Intersection over union of boxes, which broadcast."""
    (a_low, a_high), (b_low, b_high) = parts(a), parts(b)
    inside = (a_high.minimum(b_high) - a_low.maximum(b_low) + pixel).maximum(0.0).reduce("Prod", [-1])
    sizes = [(high - low + pixel).reduce("Prod", [-1]) for low, high in ((a_low, a_high), (b_low, b_high))]
    union = sizes[0] + sizes[1] - inside
    return (inside > 0).select(inside / (inside > 0).select(union, 1), 0)


@exported("iou_similarity")
def iou_similarity(call: Call) -> None:
    pixel = 0.0 if call.attr("box_normalized") else 1.0
    write(call, overlaps(read(call).unsqueeze(1), read(call, "Y").unsqueeze(0), pixel))


# Pooled ---------------------------------------------------------------------------------------------------------------
def images_of(call: Call, slot: str, counts: str, i: int = 0) -> tuple[Expr, Expr]:
    """The image of each box, and how many images there are."""
    if call.has(counts):
        number = read(call, counts, i).cast(VarType.INT64).reshape(-1)
        return ids_of(offsets_of(number)), number.size(0)
    if call.graph.lod(call.name(slot, i)):
        sequences = Sequences(call, slot, i)
        return sequences.ids(), sequences.count
    boxes = read(call, slot, i)
    return full(boxes.shape(0, 1), 0, VarType.INT64), constant(call.graph, [1])


@exported("roi_align")
def roi_align(call: Call) -> None:
    image, _ = images_of(call, "ROIs", "RoisNum")
    mode = "half_pixel" if call.attr("aligned") else "output_half_pixel"
    size = {"output_height": call.attr("pooled_height"), "output_width": call.attr("pooled_width")}
    out = read(call).op(
        "RoiAlign",
        read(call, "ROIs"),
        image,
        coordinate_transformation_mode=mode,
        mode="avg",
        sampling_ratio=max(call.attr("sampling_ratio"), 0),
        spatial_scale=call.attr("spatial_scale"),
        **size,
    )
    write(call, out)


@exported("roi_pool")
def roi_pool(call: Call) -> None:
    """Cells of whole pixels, the largest one of each: rows and columns of a cell are a mask each."""
    x, boxes = read(call), read(call, "ROIs")
    image, _ = images_of(call, "ROIs", "RoisNum")
    corners = (boxes * call.attr("spatial_scale") + 0.5).op("Floor").cast(VarType.INT64)
    lowest = np.finfo(numpy_dtype(x.dtype)).min
    masks = []
    for axis, bins, length in ((1, call.attr("pooled_height"), x.size(2)), (0, call.attr("pooled_width"), x.size(3))):
        start, end = corners.slice(axis, axis + 1, 1), corners.slice(axis + 2, axis + 3, 1)
        size = (end - start + 1).maximum(1).cast(x.dtype) / float(bins)
        place = constant(call.graph, np.arange(bins)[None], x.dtype)
        first = ((place * size).op("Floor").cast(VarType.INT64) + start).maximum(0).minimum(length)
        last = (((place + 1.0) * size).op("Ceil").cast(VarType.INT64) + start).maximum(0).minimum(length)
        pixel = arange(length)
        masks.append((pixel >= first.unsqueeze(2)) & (pixel < last.unsqueeze(2)))  # [boxes, bins, length]
    rows, columns = masks
    maps = x.gather(image)  # [boxes, channels, h, w]
    across = columns.unsqueeze(1, 2).select(maps.unsqueeze(3), lowest).max(-1)  # [boxes, channels, h, bins]
    down = rows.unsqueeze(1, 4).select(across.unsqueeze(2), lowest).max(3)
    there = rows.any(2).unsqueeze(2) & columns.any(2).unsqueeze(1)
    write(call, there.unsqueeze(1).select(down, 0))


@exported("deformable_conv_v1")
def deformable_conv_v1(call: Call) -> None:
    inputs = [read(call, "Filter"), read(call, "Offset")]
    pads = list(call.attr("paddings")) * 2
    attrs: dict[str, Any] = {
        "strides": list(call.attr("strides")),
        "pads": pads,
        "dilations": list(call.attr("dilations")),
    }
    attrs |= {"group": call.attr("groups"), "offset_group": call.attr("deformable_groups")}
    write(call, read(call, "Input").op("DeformConv", *inputs, **attrs), "Output")
