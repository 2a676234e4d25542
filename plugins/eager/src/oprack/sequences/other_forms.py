"""Sequences of other libraries: nested tensors of PyTorch, ragged tensors of TensorFlow, lists of Arrow.

None of these libraries is imported unless something is made for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError, InvalidLoDError
from oprack.sequences.plain_forms import innermost, memory_of, one_level, rows_of


def _library(name: str, function: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"oprack.sequences.{function} makes something of {name}, which is not installed ({error}); install it with "
            f"pip install {name}"
        ) from error


def _array(values: Any) -> np.ndarray:
    """The memory of a tensor of another library, which says by DLPack or by NumPy's protocol where it is."""
    if hasattr(values, "detach"):
        values = values.detach()
    return np.from_dlpack(values) if hasattr(values, "__dlpack__") else np.asarray(values)


# PyTorch --------------------------------------------------------------------------------------------------------------
def parts_of_nested(nested: Any, what: str) -> tuple[Any, Any]:
    """The values and offsets of a jagged nested tensor of PyTorch, as tensors of PyTorch on its memory.

    Args:
        nested: `torch.nested.nested_tensor(..., layout=torch.jagged)`, of [sequences, jagged, ...].
        what: Who asks, for messages.

    Returns:
        (values [rows, ...], offsets [sequences + 1]).

    Raises:
        InvalidLoDError: It is no jagged nested tensor, has holes between its sequences, or another jagged dim.
    """
    if not getattr(nested, "is_nested", False) or not callable(getattr(nested, "offsets", None)):
        layout = f" of layout {nested.layout}" if getattr(nested, "is_nested", False) else " that is not nested"
        raise InvalidLoDError(
            f"{what}: got a {type(nested).__name__}{layout}; expected a nested tensor with layout=torch.jagged, which "
            "has values() and offsets()"
        )
    if nested.lengths() is not None:
        raise InvalidLoDError(f"{what}: the tensor has holes between its sequences; expected nested.contiguous()")
    if getattr(nested, "_ragged_idx", 1) != 1:
        raise InvalidLoDError(
            f"{what}: dim {nested._ragged_idx} of the tensor is the jagged one; expected dim 1; .transpose makes it so"
        )
    return nested.values(), nested.offsets()


def from_nested(nested: Any) -> Tensor:
    """A jagged nested tensor of PyTorch (NJT); its values are shared, not copied.

    Args:
        nested: `torch.nested.nested_tensor(..., layout=torch.jagged)` on the CPU, of [sequences, jagged, ...].

    Returns:
        [rows, ...] with LoD.

    Raises:
        InvalidLoDError: It has no values and offsets, holes between its sequences, or another jagged dim.
    """
    values, offsets = parts_of_nested(nested, "oprack.sequences.from_nested")
    return rows_of(_array(values), [_array(offsets)])


def to_nested(x: Tensor) -> Any:
    """A jagged nested tensor of PyTorch on the memory of the rows.

    Args:
        x: Rows [N, ...] with one level of LoD, on the CPU.

    Returns:
        A torch.Tensor [sequences, jagged, ...] with layout torch.jagged.

    Raises:
        InvalidLoDError: x has no LoD, or several levels.
        ImportError: PyTorch is not installed.
    """
    offsets = np.asarray(one_level(x, "oprack.sequences.to_nested"), np.int64)
    torch = _library("torch", "to_nested")
    return torch.nested.nested_tensor_from_jagged(torch.from_numpy(memory_of(x)), torch.from_numpy(offsets))


# TensorFlow -----------------------------------------------------------------------------------------------------------
def from_ragged(ragged: Any) -> Tensor:
    """A ragged tensor of TensorFlow; each ragged dim is a level of LoD.

    Args:
        ragged: tf.RaggedTensor, or what has `values` and `row_splits` as it has.

    Returns:
        [rows, ...] with LoD.

    Raises:
        InvalidArgumentError: It has no values and row_splits.
    """
    levels, values = [], ragged
    while hasattr(values, "row_splits"):
        levels.append(_array(values.row_splits))
        values = values.values
    if not levels:
        raise InvalidArgumentError(
            f"oprack.sequences.from_ragged: got a {type(ragged).__name__}; expected a tf.RaggedTensor, which has "
            "values and row_splits"
        )
    return rows_of(_array(values), levels)


def to_ragged(x: Tensor) -> Any:
    """A ragged tensor of TensorFlow.

    Args:
        x: Rows [N, ...] with LoD.

    Returns:
        tf.RaggedTensor with a ragged dim for each level.

    Raises:
        InvalidLoDError: x has no LoD.
        ImportError: TensorFlow is not installed.
    """
    innermost(x, "oprack.sequences.to_ragged")
    ragged = _library("tensorflow", "to_ragged").RaggedTensor
    found = memory_of(x)
    for level in reversed(x.lod):
        found = ragged.from_row_splits(found, np.asarray(level, np.int64))
    return found


# Arrow ----------------------------------------------------------------------------------------------------------------
def from_arrow(array: Any) -> Tensor:
    """A list array of Arrow; its values are shared, not copied. Lists of lists have two levels of LoD.

    Args:
        array: pyarrow.ListArray or LargeListArray of numbers, of fixed-size lists of them, or of lists, without nulls.
            A chunked array is joined first, which copies.

    Returns:
        [rows, ...] with LoD. Arrow's memory can't be written to.

    Raises:
        InvalidArgumentError: It is no list array, or has nulls.
    """
    array = array.combine_chunks() if hasattr(array, "combine_chunks") else array
    levels, values = [], array
    while hasattr(values, "offsets"):
        _refuse_nulls(values)
        offsets = values.offsets.to_numpy()
        first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        levels.append(offsets - first)
        values = values.values.slice(first, last - first)
    if not levels:
        raise InvalidArgumentError(
            f"oprack.sequences.from_arrow: got a {type(array).__name__}; expected a pyarrow.ListArray"
        )
    inner: list[int] = []
    while hasattr(values.type, "list_size"):
        _refuse_nulls(values)
        inner.append(values.type.list_size)
        values = values.flatten()
    _refuse_nulls(values)
    rows = values.to_numpy(zero_copy_only=str(values.type) != "bool")
    return rows_of(rows.reshape(-1, *inner) if inner else rows, levels)


def _refuse_nulls(array: Any) -> None:
    if array.null_count:
        raise InvalidArgumentError(
            f"oprack.sequences.from_arrow: {array.null_count} of the {array.type} are null; expected none: fill them "
            "with fill_null, or leave them out with drop_null"
        )


def to_arrow(x: Tensor) -> Any:
    """A list array of Arrow on the memory of the rows.

    Args:
        x: Rows [N] or [N, ...] with LoD; dims behind the first become fixed-size lists.

    Returns:
        pyarrow.LargeListArray, of LargeListArrays where there are several levels.

    Raises:
        InvalidLoDError: x has no LoD.
        ImportError: pyarrow is not installed.
    """
    innermost(x, "oprack.sequences.to_arrow")
    arrow = _library("pyarrow", "to_arrow")
    rows = memory_of(x)
    found = arrow.array(rows.reshape(-1))
    for size in reversed(rows.shape[1:]):
        found = arrow.FixedSizeListArray.from_arrays(found, size)
    for level in reversed(x.lod):
        found = arrow.LargeListArray.from_arrays(arrow.array(np.asarray(level, np.int64)), found)
    return found
