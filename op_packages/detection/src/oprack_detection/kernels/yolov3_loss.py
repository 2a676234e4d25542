"""Kernels of yolov3_loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.types import FLOATS

_NO_BOX = 1e-6  # a true box that is narrower or lower is none
_POSITIVE = 1e-5  # weight above which a cell's box counts as positive


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _cross_entropy(x: Array, target: Array | int) -> Array:
    """Of sigmoid(x) against a target in [0, 1]."""
    return np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))


def _centred_overlaps(a: Array, b: Array) -> Array:
    """Intersection over union of boxes (x, y, w, h) [..., 4] given by centre and size, which broadcast."""
    low = np.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = np.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    inside = np.maximum(high - low, 0).prod(axis=-1)
    union = a[..., 2:].prod(axis=-1) + b[..., 2:].prod(axis=-1) - inside
    return np.where(inside > 0, inside / np.where(union > 0, union, 1), 0)


@dataclass
class _Matches:
    """True boxes that belong to this head: where they are in it, and what it should say. Arrays are [matches, ...]."""

    place: tuple[Array, ...]  # image, anchor of the head, row, column
    target: np.ndarray  # tx, ty, tw, th
    weight: np.ndarray  # of the location
    score: np.ndarray
    classes: np.ndarray  # targets of the classes [matches, class_num]


def _head(X: Array, anchor_mask: Sequence[int], class_num: int) -> Array:
    n, _, h, w = X.shape
    return X.reshape(n, len(anchor_mask), 5 + class_num, h, w)


def _anchor_sizes(anchors: Sequence[int], X: Array, downsample_ratio: int) -> Array:
    """Width and height of all anchors relative to the image."""
    return np.array(anchors, X.dtype).reshape(-1, 2) / X.dtype.type(downsample_ratio * X.shape[2])


def _match(boxes: Array, sizes: Array, anchor_mask: Sequence[int]) -> Array:
    """Anchor of this head for each true box [N, B]: -1 for none."""
    alone = np.concatenate([np.zeros_like(boxes[..., :2]), boxes[..., 2:]], axis=-1)
    anchors = np.concatenate([np.zeros_like(sizes), sizes], axis=-1)
    best = _centred_overlaps(alone[:, :, None], anchors).argmax(axis=-1)
    of_head = np.full(len(sizes), -1)
    of_head[anchor_mask[::-1]] = np.arange(len(anchor_mask))[::-1]
    return np.where((boxes[..., 2:] > _NO_BOX).all(axis=-1), of_head[best], -1)


def _matches(
    X: Array,
    boxes: Array,
    labels: Array,
    scores: Array | None,
    match: Array,
    sizes: Array,
    anchor_mask: Sequence[int],
    class_num: int,
    smooth: bool,
) -> _Matches:
    h, w = X.shape[2:]
    image, t = np.nonzero(match >= 0)
    box, anchor = boxes[image, t], match[image, t]
    grid = np.array([w, h], X.dtype)
    cell = (box[:, :2] * grid).astype(np.int64)
    label = labels[image, t].astype(np.int64)
    if len(label) and not (0 <= label.min() and label.max() < class_num):
        raise InvalidArgumentError(
            f"op yolov3_loss: GTLabel lies in [{label.min()}, {label.max()}]; expected classes in [0, {class_num})"
        )
    if len(cell) and not ((cell >= 0).all() and (cell < (w, h)).all()):
        raise InvalidArgumentError(
            "op yolov3_loss: GTBox has a centre outside the image; expected centres relative to the image in [0, 1)"
        )
    place = image, anchor, cell[:, 1], cell[:, 0]
    size = np.log(box[:, 2:] / sizes[np.array(anchor_mask, np.int64)[anchor]])
    target = np.concatenate([box[:, :2] * grid - cell, size], axis=1)
    score = np.ones(len(t), X.dtype) if scores is None else scores[image, t]
    spread = min(1 / class_num, 1 / 40) if smooth else 0.0
    classes = np.full((len(t), class_num), spread, X.dtype)
    classes[np.arange(len(t)), label] = 1 - spread
    return _Matches(place, target, (2 - box[:, 2:].prod(axis=1)) * score, score, classes)


def _objectness(
    X: Array,
    boxes: Array,
    sizes: Array,
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    scale_x_y: float,
) -> Array:
    """0, or -1 where the box of a cell overlaps a true one by more than ignore_thresh: [N, anchors, H, W]."""
    head = _head(X, anchor_mask, class_num)
    n, count, _, h, w = head.shape
    bias = -0.5 * (scale_x_y - 1)
    box = np.empty((n, count, h, w, 4), X.dtype)
    box[..., 0] = (np.arange(w) + _sigmoid(head[:, :, 0]) * scale_x_y + bias) / w
    box[..., 1] = (np.arange(h)[:, None] + _sigmoid(head[:, :, 1]) * scale_x_y + bias) / h
    own = sizes[np.array(anchor_mask, np.int64)]
    box[..., 2] = np.exp(head[:, :, 2]) * own[:, 0, None, None]
    box[..., 3] = np.exp(head[:, :, 3]) * own[:, 1, None, None]
    worst = np.zeros(box.shape[:-1], X.dtype)
    for t in range(boxes.shape[1]):  # over the places for true boxes in an image
        true = boxes[:, t][:, None, None, None]
        there = (true[..., 2:] > _NO_BOX).all(axis=-1)
        worst = np.maximum(worst, np.where(there, _centred_overlaps(box, true), 0))
    return np.where(worst > ignore_thresh, -1, 0).astype(X.dtype)


@kernel("yolov3_loss", dtypes=FLOATS)
def yolov3_loss(
    X: Array,
    GTBox: Array,
    GTLabel: Array,
    GTScore: Array | None = None,
    *,
    anchors: list[int],
    anchor_mask: list[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    use_label_smooth: bool,
    scale_x_y: float,
) -> tuple[Array, ...]:
    sizes = _anchor_sizes(anchors, X, downsample_ratio)
    objectness = _objectness(X, GTBox, sizes, anchor_mask, class_num, ignore_thresh, scale_x_y)
    match = _match(GTBox, sizes, anchor_mask)
    m = _matches(X, GTBox, GTLabel, GTScore, match, sizes, anchor_mask, class_num, use_label_smooth)
    objectness[m.place] = m.score
    head = _head(X, anchor_mask, class_num)
    image, anchor, row, column = m.place
    said = head[image, anchor, :, row, column]

    location = _cross_entropy(said[:, :2], m.target[:, :2]).sum(axis=1) + abs(said[:, 2:4] - m.target[:, 2:]).sum(
        axis=1
    )
    classes = _cross_entropy(said[:, 5:], m.classes).sum(axis=1)
    loss = np.bincount(image, weights=location * m.weight + classes * m.score, minlength=len(X))
    positive = np.maximum(objectness, 0)
    cells = np.where(objectness > _POSITIVE, _cross_entropy(head[:, :, 4], 1) * positive, 0)
    cells += np.where((objectness <= _POSITIVE) & (objectness > -0.5), _cross_entropy(head[:, :, 4], 0), 0)
    return (loss + cells.sum(axis=(1, 2, 3))).astype(X.dtype), objectness, match.astype(np.int32)


@kernel("yolov3_loss_grad", dtypes=FLOATS)
def yolov3_loss_grad(
    X: Array,
    GTBox: Array,
    GTLabel: Array,
    ObjectnessMask: Array,
    GTMatchMask: Array,
    Loss_grad: Array,
    GTScore: Array | None = None,
    *,
    anchors: list[int],
    anchor_mask: list[int],
    class_num: int,
    downsample_ratio: int,
    use_label_smooth: bool,
) -> dict[str, Array]:
    sizes = _anchor_sizes(anchors, X, downsample_ratio)
    m = _matches(X, GTBox, GTLabel, GTScore, GTMatchMask, sizes, anchor_mask, class_num, use_label_smooth)
    head = _head(X, anchor_mask, class_num)
    image, anchor, row, column = m.place
    said = head[image, anchor, :, row, column]
    slope = np.zeros_like(said)
    slope[:, :2] = (_sigmoid(said[:, :2]) - m.target[:, :2]) * m.weight[:, None]
    slope[:, 2:4] = np.sign(said[:, 2:4] - m.target[:, 2:]) * m.weight[:, None]
    slope[:, 5:] = (_sigmoid(said[:, 5:]) - m.classes) * m.score[:, None]
    dx = np.zeros_like(head)
    # several true boxes may belong to one cell: their gradients add up
    cells: Any = (image, anchor, slice(None), row, column)
    np.add.at(dx, cells, slope)
    objectness, s = ObjectnessMask, _sigmoid(head[:, :, 4])
    dx[:, :, 4] = np.where(objectness > _POSITIVE, (s - 1) * objectness, np.where(objectness > -0.5, s, 0))
    return {"X@GRAD": (dx * Loss_grad.reshape(-1, 1, 1, 1, 1)).reshape(X.shape)}
