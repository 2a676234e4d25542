"""Sequences as arrays: lists of them, padded ones, and rows with offsets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, cast

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import CPU, tensor_meta
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.functional.tensor import to_tensor
from oprack.tensor import LoDTensor, check_lod


def rows_of(array: np.ndarray, lod: Sequence[Any]) -> Tensor:
    """A tensor on the memory of an array, with offsets for each level. Raises InvalidLoDError when these do not fit."""
    offsets = check_lod([np.asarray(level).tolist() for level in lod], array.shape[0])
    return new_tensor(array, tensor_meta(LoDTensor, array.dtype, CPU, len(offsets)), offsets)


def memory_of(x: Tensor) -> np.ndarray:
    """The rows themselves, or a copy of those of a device."""
    array = x.value.array
    return array if isinstance(array, np.ndarray) else x.numpy()


def innermost(x: Tensor, what: str) -> list[int]:
    """The offsets of rows. Raises InvalidLoDError for a tensor without LoD."""
    if not isinstance(x, Tensor) or not x.lod:
        got = f"a tensor of shape {list(x.shape)} without LoD" if isinstance(x, Tensor) else f"a {type(x).__name__}"
        raise InvalidLoDError(
            f"{what}: got {got}; expected rows with LoD, as oprack.sequences.from_list(arrays) or "
            "oprack.to_tensor(rows, lod=[[0, ...]]) make them"
        )
    return x.lod[-1]


def one_level(x: Tensor, what: str) -> list[int]:
    """As innermost, of a tensor of one level. Raises InvalidLoDError for others."""
    offsets = innermost(x, what)
    if len(x.lod) > 1:
        raise InvalidLoDError(f"{what}: the tensor has {len(x.lod)} levels of LoD; expected one")
    return offsets


def lengths(x: Tensor) -> np.ndarray:
    """How many rows each sequence has.

    Args:
        x: Rows with LoD; of several levels, the innermost counts.

    Returns:
        int64 [number of sequences].

    Raises:
        InvalidLoDError: x has no LoD.
    """
    return np.diff(np.asarray(innermost(x, "oprack.sequences.lengths"), np.int64))


def from_list(arrays: Sequence[Any], dtype: Any = None) -> Tensor:
    """Rows of arrays of different lengths, one after the other.

    Args:
        arrays: An array [length, ...] for each sequence, or a list of numbers; a list of lists of them for two levels.
        dtype: Dtype of the result; default: that of the arrays that have rows.

    Returns:
        [sum of lengths, ...] with LoD.

    Raises:
        InvalidArgumentError: There is no array, or their rows differ in shape or in kind of numbers.
    """
    from oprack.data.data_loader import lod_collate

    if not len(arrays):
        raise InvalidArgumentError("oprack.sequences.from_list([]): expected at least one array")
    parts = list(arrays)
    counts = None
    if any(isinstance(part, list | tuple) and part and np.ndim(part[0]) for part in parts):
        counts = [len(part) for part in parts]
        parts = [array for part in parts for array in part]
    parts = [np.asarray(part) if dtype is None else np.asarray(part, dtype) for part in parts]
    if not all(part.ndim for part in parts):
        raise InvalidArgumentError("oprack.sequences.from_list: a sequence is a single number; expected arrays of rows")
    rows = lod_collate(parts)
    if counts is not None:
        rows = to_tensor(rows, lod=[[0, *accumulate(counts)], *rows.lod])
    return cast("Tensor", rows)


def to_list(x: Tensor) -> list[Any]:
    """An array for each sequence.

    Args:
        x: Rows [N, ...] with LoD.

    Returns:
        Views of x, in lists for each level above the first.

    Raises:
        InvalidLoDError: x has no LoD.
    """
    innermost(x, "oprack.sequences.to_list")
    parts: Any = memory_of(x)
    for level in reversed(x.lod):
        parts = [parts[a:b] for a, b in pairwise(level)]
    return cast("list[Any]", parts)


def from_cu_seqlens(values: Any, cu_seqlens: Any) -> Tensor:
    """Rows and cumulative lengths, as flash attention takes them.

    Args:
        values: Array or Tensor [N, ...]; an array is shared, not copied.
        cu_seqlens: Integers [sequences + 1], from 0 to N.

    Returns:
        The rows with LoD.

    Raises:
        InvalidLoDError: cu_seqlens does not start at 0, falls, or does not end at N.
    """
    offsets = [np.asarray(cu_seqlens).reshape(-1)]
    if isinstance(values, Tensor):
        from oprack import functional

        return cast("Tensor", functional.lod_reset(values, y=np.asarray(offsets[0], np.int64)))
    return rows_of(np.asarray(values), offsets)


def to_cu_seqlens(x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Rows and cumulative lengths.

    Args:
        x: Rows with one level of LoD.

    Returns:
        (the rows, which are shared, int32 [sequences + 1]).

    Raises:
        InvalidLoDError: x has no LoD, or several levels.
    """
    return memory_of(x), np.asarray(one_level(x, "oprack.sequences.to_cu_seqlens"), np.int32)


def from_padded(x: Any, lengths: Any = None, mask: Any = None) -> Tensor:
    """The rows of a padded batch that are no padding; gradients flow back to them.

    Args:
        x: Array or Tensor [sequences, longest, ...].
        lengths: How many rows of each sequence are no padding, integers [sequences]: the first ones.
        mask: What is no padding, bools or numbers [sequences, longest], in place of lengths; kept rows may lie
            anywhere.

    Returns:
        [rows, ...] with LoD.

    Raises:
        InvalidArgumentError: Both or none of lengths and mask are given, or they do not fit x.
    """
    from oprack import functional

    if (lengths is None) == (mask is None):
        given = "neither" if mask is None else "both"
        raise InvalidArgumentError(
            f"oprack.sequences.from_padded: got {given} of lengths and mask; expected one of them"
        )
    if mask is None:
        shape, counted = np.shape(x), np.asarray(lengths).reshape(-1)
        fits = len(shape) >= 2 and len(counted) == shape[0] and counted.dtype.kind in "iu"
        if not fits or (counted < 0).any() or (counted > shape[1]).any():
            raise InvalidArgumentError(
                f"oprack.sequences.from_padded: lengths are {counted.tolist()}; expected an integer from 0 to "
                f"{shape[1] if len(shape) > 1 else 'the longest'} for each sequence of x, whose shape is {list(shape)}"
            )
        mask = np.arange(shape[1]) < counted[:, None]
    return cast("Tensor", functional.unpad_by_mask(x, mask)[0])


def to_padded(x: Tensor, length: int | None = None, value: float = 0.0) -> tuple[Tensor, Tensor]:
    """Sequences as a padded batch; gradients flow back to the rows.

    Args:
        x: Rows [N, ...] with one level of LoD.
        length: The length of the result, at least that of the longest sequence; None: that.
        value: What stands for padding.

    Returns:
        (Tensor [sequences, length, ...], bool Tensor [sequences, length] of what is no padding).

    Raises:
        InvalidLoDError: x has no LoD, or several levels.
        InvalidArgumentError: A sequence is longer than `length`.
    """
    from oprack import functional

    counted = np.diff(one_level(x, "oprack.sequences.to_padded"))
    longest = int(counted.max(initial=0))
    if length is not None and length < longest:
        raise InvalidArgumentError(
            f"oprack.sequences.to_padded: length is {length}, but the longest sequence has {longest} rows; expected at "
            "least as many, or None"
        )
    mask = np.arange(longest if length is None else length) < counted[:, None]
    index = np.flatnonzero(mask)
    out = functional.pad_by_index(x, index, mask)
    if value:
        fill = np.where(mask, 0, value).astype(x.dtype).reshape(*mask.shape, *[1] * (x.ndim - 1))
        out = out + to_tensor(fill)
    return out, to_tensor(mask)
