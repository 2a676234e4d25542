"""Kernels of ops.sequences."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor, LoDTensorArray


def _array(tensor: LoDTensor | None) -> Array:
    if tensor is None:
        raise IndexError("the sequence has no tensor at this place")
    return np.asarray(tensor.array)


def _copies(sequence: LoDTensorArray) -> list[LoDTensor]:
    """The tensors of a sequence, each in memory of its own: a result never lies on that of an input."""
    return [LoDTensor(_array(t).copy()) for t in sequence]


def _position(position: Array | None, default: int) -> int:
    return default if position is None else int(position.reshape(-1)[0])


@kernel("onnx_sequence_construct", place="cpu")
def sequence_construct(inputs: list[Array]) -> LoDTensorArray:
    return LoDTensorArray([LoDTensor(x.copy()) for x in inputs])


@kernel("onnx_sequence_empty", place="cpu")
def sequence_empty(*, dtype: int) -> LoDTensorArray:
    return LoDTensorArray()


@kernel("onnx_sequence_insert", place="cpu")
def sequence_insert(input_sequence: LoDTensorArray, tensor: Array, position: Array | None = None) -> LoDTensorArray:
    found = _copies(input_sequence)
    place = _position(position, len(found))
    if not -len(found) <= place <= len(found):
        raise IndexError(f"position is {place}; the sequence has {len(found)} tensors")
    found.insert(place, LoDTensor(tensor.copy()))
    return LoDTensorArray(found)


@kernel("onnx_sequence_erase", place="cpu")
def sequence_erase(input_sequence: LoDTensorArray, position: Array | None = None) -> LoDTensorArray:
    found = _copies(input_sequence)
    del found[_position(position, -1)]
    return LoDTensorArray(found)


@kernel("onnx_sequence_at", place="cpu")
def sequence_at(input_sequence: LoDTensorArray, position: Array) -> Array:
    return np.array(_array(input_sequence[_position(position, 0)]))


@kernel("onnx_sequence_length", place="cpu")
def sequence_length(input_sequence: LoDTensorArray, *, per_value: bool) -> Array:
    return np.array(len(input_sequence) > 0) if per_value else np.array(len(input_sequence), np.int64)


@kernel("onnx_concat_from_sequence", place="cpu")
def concat_from_sequence(input_sequence: LoDTensorArray, *, axis: int, new_axis: bool) -> Array:
    arrays = [_array(t) for t in input_sequence]
    return np.stack(arrays, axis) if new_axis else np.concatenate(arrays, axis)


@kernel("onnx_split_to_sequence", place="cpu")
def split_to_sequence(input: Array, split: Array | None = None, *, axis: int, keepdims: bool) -> LoDTensorArray:
    size = input.shape[axis]
    if split is None:
        cuts = np.arange(1, size)
    elif split.ndim == 0:
        cuts = np.arange(int(split.reshape(-1)[0]), size, int(split.reshape(-1)[0]))
    else:
        cuts = np.cumsum(split)[:-1]
    parts = np.split(input, cuts, axis)
    if split is None and not keepdims:
        parts = [np.squeeze(part, axis) for part in parts]
    return LoDTensorArray([LoDTensor(part.copy()) for part in parts])
