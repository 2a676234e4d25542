"""Kernels of ops.indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.kernel import Array, kernel

_UPDATES = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@kernel("onnx_slice", place="cpu")
def slice_(data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    wanted = [slice(None)] * data.ndim
    along = range(starts.size) if axes is None else axes.reshape(-1)
    by = np.ones(starts.size, np.int64) if steps is None else steps.reshape(-1)
    for axis, start, end, step in zip(along, starts.reshape(-1), ends.reshape(-1), by, strict=True):
        first, last, stride = slice(int(start), int(end), int(step)).indices(data.shape[axis])
        wanted[axis] = slice(first, None if last < 0 else last, stride)
    return data[tuple(wanted)].copy()


@kernel("onnx_gather", place="cpu")
def gather(data: Array, indices: Array, *, axis: int) -> Array:
    return np.take(data, indices, axis)


@kernel("onnx_gather_elements", place="cpu")
def gather_elements(data: Array, indices: Array, *, axis: int) -> Array:
    return data[_along(indices, axis)]


@kernel("onnx_gather_nd", place="cpu")
def gather_nd(data: Array, indices: Array, *, batch_dims: int) -> Array:
    batch = np.ogrid[tuple(slice(n) for n in indices.shape[:batch_dims])] if batch_dims else ()
    between = indices.ndim - 1 - batch_dims
    leading = tuple(b.reshape(b.shape + (1,) * between) for b in batch)
    return data[leading + tuple(np.moveaxis(indices, -1, 0))]


def _along(indices: Array, axis: int) -> tuple[Any, ...]:
    """An index of every element of `indices` into a tensor of its rank: its own place, but for the axis."""
    places: list[Any] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    places[axis] = indices
    return tuple(places)


def _update(data: Array, where: tuple[Any, ...], updates: Array, reduction: str) -> Array:
    out = data.copy()
    if reduction == "none":
        out[where] = updates
    else:
        _UPDATES[reduction].at(out, where, updates)
    return out


@kernel("onnx_scatter_elements", place="cpu")
def scatter_elements(data: Array, indices: Array, updates: Array, *, axis: int, reduction: str) -> Array:
    return _update(data, _along(indices, axis), updates, reduction)


@kernel("onnx_scatter_nd", place="cpu")
def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str) -> Array:
    return _update(data, tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


@kernel("onnx_tensor_scatter", place="cpu")
def tensor_scatter(
    past_cache: Array, update: Array, write_indices: Array | None = None, *, axis: int, mode: str
) -> Array:
    out, steps, size = past_cache.copy(), update.shape[axis], past_cache.shape[axis]
    first = np.zeros(out.shape[0], np.int64) if write_indices is None else write_indices
    places = first[:, None] + np.arange(steps)
    if mode == "circular":
        places = places % size
    moved, source = np.moveaxis(out, axis, 1), np.moveaxis(update, axis, 1)
    moved[np.arange(out.shape[0])[:, None], places] = source
    return out


@kernel("onnx_compress", place="cpu")
def compress(input: Array, condition: Array, *, axis: int, flat: bool) -> Array:
    return np.compress(condition, input, None if flat else axis)


@kernel("onnx_unique", place="cpu")
def unique(X: Array, *, axis: int, flat: bool, sorted: bool) -> tuple[Array, Array, Array, Array]:
    along = None if flat else axis
    found, first, inverse, counts = np.unique(X, True, True, True, axis=along)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        found = np.take(found, order, 0 if flat else axis)
        first, counts = first[order], counts[order]
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        inverse = rank[inverse]
    return found, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


@kernel("onnx_top_k", place="cpu")
def top_k(X: Array, K: Array, *, axis: int, largest: bool) -> tuple[Array, Array]:
    rows, k = np.moveaxis(X, axis, -1), int(K.reshape(-1)[0])
    if largest:  # from the back, so that of equals the first one comes first
        order = rows.shape[-1] - 1 - np.argsort(rows[..., ::-1], -1, kind="stable")[..., ::-1]
    else:
        order = np.argsort(rows, -1, kind="stable")
    order = order[..., :k]
    values = np.take_along_axis(rows, order, -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(order, -1, axis).astype(np.int64)


@kernel("onnx_one_hot", place="cpu")
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int) -> Array:
    size = int(depth.reshape(-1)[0])
    places = indices.astype(np.int64)
    places = np.where(places < 0, places + size, places)
    axis = axis if axis >= 0 else indices.ndim + 1 + axis
    shape = [1] * (indices.ndim + 1)
    shape[axis] = size
    hit = np.expand_dims(places, axis) == np.arange(size).reshape(shape)
    return np.where(hit, values[1], values[0])


@kernel("onnx_reverse_sequence", place="cpu")
def reverse_sequence(input: Array, sequence_lens: Array, *, batch_axis: int, time_axis: int) -> Array:
    rows = np.moveaxis(input, (batch_axis, time_axis), (0, 1))
    steps = np.arange(rows.shape[1])
    lengths = sequence_lens.reshape(-1, 1)
    places = np.where(steps < lengths, lengths - 1 - steps, steps)
    return np.moveaxis(rows[np.arange(rows.shape[0])[:, None], places], (0, 1), (batch_axis, time_axis))


def _first(value: Array | None, default: float) -> float:
    return default if value is None or not value.size else value.reshape(-1)[0].item()


@kernel("onnx_non_max_suppression", place="cpu")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: bool,
) -> Array:
    most, overlap = int(_first(max_output_boxes_per_class, 0)), _first(iou_threshold, 0.0)
    least = _first(score_threshold, -np.inf)
    if center_point_box:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    area = np.prod(high - low, -1)
    found: list[tuple[int, int, int]] = []
    for b, c in np.ndindex(*scores.shape[:2]):
        order = np.argsort(-scores[b, c], kind="stable")
        order = order[scores[b, c][order] > least]
        taken = 0
        while order.size and taken < most:
            best, order = order[0], order[1:]
            found.append((b, c, int(best)))
            taken += 1
            common = np.minimum(high[b][order], high[b][best]) - np.maximum(low[b][order], low[b][best])
            both = np.prod(np.maximum(common, 0), -1)
            union = area[b][order] + area[b][best] - both
            order = order[both <= overlap * union]
    return np.array(found, np.int64).reshape(-1, 3)


@kernel("onnx_arg_reduce", place="cpu")
def arg_reduce(data: Array, *, axis: int, keepdims: bool, largest: bool, select_last_index: bool) -> Array:
    find = np.argmax if largest else np.argmin
    if not select_last_index:
        return np.asarray(find(data, axis=axis, keepdims=keepdims), np.int64)
    last = data.shape[axis] - 1 - find(np.flip(data, axis), axis=axis, keepdims=keepdims)
    return np.asarray(last, np.int64)
