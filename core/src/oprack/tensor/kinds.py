"""The kinds of variables, and which class holds the value of each."""

from __future__ import annotations

from typing import Any

from oprack.tensor.lod_tensor import LoDTensor, LoDTensorArray
from oprack.tensor.selected_rows import SelectedRows
from oprack.tensor.sparse_tensor import SparseCooTensor, SparseCsrTensor, SparseTensor
from oprack.tensor.sparse_value import SparseValue
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
