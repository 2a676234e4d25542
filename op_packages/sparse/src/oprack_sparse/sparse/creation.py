"""Sparse tensors of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import functional as F
from oprack.layers import Variable
from oprack.tensor import SparseCooTensor, SparseCsrTensor, numpy_dtype

if TYPE_CHECKING:
    from oprack import Tensor

__all__ = ["is_same_shape", "sparse_coo_tensor", "sparse_csr_tensor"]


def _array(given: Any, dtype: Any = None) -> Any:
    value = given.value.array if hasattr(given, "__oprack_value__") else given
    array = value if hasattr(value, "dtype") else np.asarray(value)
    if dtype is not None:
        return array.astype(numpy_dtype(dtype))
    return array.astype(np.float32) if not hasattr(value, "dtype") and array.dtype == np.float64 else array.copy()


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> Tensor:
    """A tensor of which element indices[:, i] is values[i]; what is listed twice adds up, the rest is zero.

    Gradients flow to `values` where it is a tensor with requires_grad, or a Variable of a program: op
    sparse_sparse_coo_tensor.

    Args:
        indices: Integers [sparse dims, n].
        values: [n, dense dims ...].
        shape: Dims; by default the smallest that hold all indices.
        dtype: Of the values.
        place: Where the tensor is put.
        stop_gradient: Whether no gradient of the tensor is wanted.

    Returns:
        The tensor.

    Raises:
        InvalidArgumentError: The arrays do not fit each other.
    """
    from oprack import to_tensor

    if isinstance(values, Variable) or getattr(values, "requires_grad", False):
        given = values if dtype is None else values.astype(dtype)
        places = indices if hasattr(indices, "requires_grad") or isinstance(indices, Variable) else to_tensor(indices)
        return F.sparse_sparse_coo_tensor(given, places, shape=[] if shape is None else list(shape))
    places, elements = _array(indices), _array(values, dtype)
    if shape is None:
        shape = (*(places.max(axis=1, initial=-1) + 1).tolist(), *elements.shape[1:])
    return to_tensor(SparseCooTensor(places, elements, shape), place=place, requires_grad=not stop_gradient)


def sparse_csr_tensor(
    crows: Any,
    cols: Any,
    values: Any,
    shape: Sequence[int],
    dtype: Any = None,
    place: Any = None,
    stop_gradient: bool = True,
) -> Tensor:
    """A matrix, or a batch of them, of which row r has the columns cols[crows[r]:crows[r + 1]].

    Args:
        crows: Integers [rows + 1], of a batch [batch * (rows + 1)].
        cols: Integers [n].
        values: [n].
        shape: [rows, cols] or [batch, rows, cols].
        dtype: Of the values.
        place: Where the tensor is put.
        stop_gradient: Whether no gradient of the tensor is wanted.

    Returns:
        The tensor.

    Raises:
        InvalidArgumentError: The arrays do not fit each other.
    """
    from oprack import to_tensor

    value = SparseCsrTensor(_array(crows), _array(cols), _array(values, dtype), shape)
    return to_tensor(value, place=place, requires_grad=not stop_gradient)


def is_same_shape(x: Tensor, y: Tensor) -> bool:
    """Tells whether two tensors, sparse or not, have the same shape.

    Args:
        x: A tensor.
        y: A tensor.

    Returns:
        Whether they have.
    """
    return tuple(x.shape) == tuple(y.shape)
