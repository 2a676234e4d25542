"""Kernel of detection_map."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_detection.kernels._boxes import overlaps


def _found(boxes: Array, wanted: Array, difficult: Array | None, threshold: float) -> tuple[Array, Array]:
    """(rows of an image's detections that count, by class; whether each is right). A class that has boxes in the image
    comes with its best detection first, any other in the order given."""
    known = np.isin(boxes[:, 0], wanted[:, 0])
    order = np.lexsort((np.where(known, -boxes[:, 1], 0), boxes[:, 0]))
    if not len(wanted):
        return order, np.zeros(len(order), bool)
    boxes = boxes[order]
    shared = overlaps(np.clip(boxes[:, None, 2:], 0, 1), wanted[None, :, -4:], 0, np)
    shared = np.where(boxes[:, :1] == wanted[None, :, 0], shared, -1)
    best = shared.argmax(axis=1)
    right = shared.max(axis=1) > threshold
    ignored = right & difficult[best] if difficult is not None else np.zeros(len(right), bool)
    # Of all that have one best box, the first is right.
    hits = np.flatnonzero(right & ~ignored)
    _, first = np.unique(best[hits], return_index=True)
    right = np.zeros(len(order), bool)
    right[hits[first]] = True
    return order[~ignored], right[~ignored]


def _state(given: Array | None, lod: list[list[int]], classes: int, dtype: np.dtype) -> list[Array]:
    if given is None or not lod:
        return [np.zeros((0, 2), dtype)] * classes
    return np.split(given, lod[-1][1:-1])


def _average_precision(rows: Array, right: Array, boxes: int, ap_type: str) -> float:
    order = np.argsort(-rows, kind="stable")
    tp = right[order].cumsum()
    precision, recall = tp / np.arange(1, len(tp) + 1), tp / boxes
    if ap_type == "integral":
        return float((precision * np.diff(recall, prepend=0)).sum())
    return float(np.mean([precision[recall >= r / 10].max(initial=0) for r in range(11)]))


@kernel("detection_map", dtypes=FLOATS)
def detection_map(
    DetectRes: Array,
    Label: Array,
    HasState: Array | None = None,
    PosCount: Array | None = None,
    TruePos: Array | None = None,
    FalsePos: Array | None = None,
    *,
    class_num: int,
    background_label: int,
    overlap_threshold: float,
    evaluate_difficult: bool,
    ap_type: str,
    ctx: KernelContext,
) -> tuple[Array, LoDTensor, LoDTensor, Array]:
    """Image by image what each detection found, then class by class how well they are ranked."""
    goes_on = HasState is not None and bool(HasState.any())
    for slot, rows in (("DetectRes", DetectRes), ("Label", Label)):
        if len(rows) and not (0 <= rows[:, 0].min() and rows[:, 0].max() < class_num):
            raise InvalidArgumentError(
                f"op detection_map: {slot} has classes {rows[:, 0].min():g} to {rows[:, 0].max():g}; expected from 0 "
                f"to {class_num - 1}"
            )
    difficult = Label[:, 1] != 0 if Label.shape[1] == 6 and not evaluate_difficult else None
    counted = Label if difficult is None else Label[~difficult]
    counts = np.bincount(counted[:, 0].astype(np.int64), minlength=class_num)
    if goes_on and PosCount is not None:
        counts = counts + PosCount.reshape(-1)
    places, right = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
    images = [ctx.lod(slot)[-1] for slot in ("DetectRes", "Label")]
    if len(images[0]) != len(images[1]):
        raise InvalidArgumentError(
            f"op detection_map: DetectRes has {len(images[0]) - 1} images and Label {len(images[1]) - 1}; expected as "
            "many"
        )
    for a, b, c, d in zip(images[0], images[0][1:], images[1], images[1][1:], strict=False):
        found = _found(DetectRes[a:b], Label[c:d], None if difficult is None else difficult[c:d], overlap_threshold)
        places.append(found[0] + a)
        right.append(found[1])
    index, hit = np.concatenate(places), np.concatenate(right)
    classes, scores = DetectRes[index, 0], DetectRes[index, 1]
    pairs = [np.stack([scores, flag], axis=1).astype(DetectRes.dtype) for flag in (hit, ~hit)]
    outs = []
    for pair, slot, given in zip(pairs, ("TruePos", "FalsePos"), (TruePos, FalsePos), strict=True):
        before = _state(given if goes_on else None, ctx.lod(slot) if goes_on else [], class_num, pair.dtype)
        outs.append([np.concatenate([old, pair[classes == c]]) for c, old in enumerate(before)])
    scored = [c for c in range(class_num) if counts[c] and c != background_label]
    total = [_average_precision(outs[0][c][:, 0], outs[0][c][:, 1], counts[c], ap_type) for c in scored]
    mean = np.array([np.mean(total) if total else 0], DetectRes.dtype)
    lod = [[0, *np.cumsum([len(part) for part in outs[0]]).tolist()]]
    true_pos, false_pos = (LoDTensor(np.concatenate(part), lod, check=False) for part in outs)
    return counts.astype(np.int32)[:, None], true_pos, false_pos, mean
