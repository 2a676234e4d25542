"""The kinds of variables, which class holds the value of each, and values made plain."""

from __future__ import annotations

from typing import Any

from oprack.tensor.arrays import plain_array
from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.selected_rows import SelectedRows
from oprack.tensor.sparse_tensor import SparseCooTensor, SparseCsrTensor, SparseTensor, SparseValue
from oprack.types import VarType

KINDS: dict[type, VarType] = {
    LoDTensor: VarType.LOD_TENSOR,
    SelectedRows: VarType.SELECTED_ROWS,
    LoDTensorArray: VarType.LOD_TENSOR_ARRAY,
    SparseCooTensor: VarType.SPARSE_COO,
    SparseCsrTensor: VarType.SPARSE_CSR,
}
"""The class of a variable's value -> the kind that its VarDesc declares. Other objects are of kind RAW."""

SPARSE_TENSORS = frozenset(kind for held, kind in KINDS.items() if issubclass(held, SparseTensor))
LISTED = frozenset(kind for held, kind in KINDS.items() if issubclass(held, SparseValue))
"""Kinds whose values list their elements, so that their dims say nothing of their memory."""


def kind_of(value: Any) -> VarType:
    """The VarType of a variable's value."""
    found = KINDS.get(type(value))
    return next((k for held, k in KINDS.items() if isinstance(value, held)), VarType.RAW) if found is None else found


def plain_value(value: Any) -> Any:
    """A value with its arrays converted by plain_array, which may raise; the value itself when that changes nothing.

    Args:
        value: A value of a variable.

    Returns:
        The value with such arrays.
    """
    if isinstance(value, LoDTensor):
        array = plain_array(value.array)
        if array is value.array:
            return value
        return LoDTensor(array, value.lod, place=value.place, check=False)
    if isinstance(value, SparseValue):
        array, pattern = plain_array(value.elements), [plain_array(a) for a in value.pattern]
        same = array is value.elements and all(a is b for a, b in zip(pattern, value.pattern, strict=True))
        return value if same else value.rebuilt(pattern, array)
    if isinstance(value, LoDTensorArray):
        items = [plain_value(t) for t in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else LoDTensorArray(items)
    return plain_array(value)
